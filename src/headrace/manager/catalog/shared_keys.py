"""Keys that the managers of a cluster share: made by the first that needs one."""

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from headrace.manager.catalog.tables import secrets
from headrace.ports.real.entropy import RealEntropy

KEY_BYTES = 32
FORWARDING = "forwarding"


def shared_key(connection: Connection, name: str) -> bytes:
    wanted = select(secrets.c.value).where(secrets.c.name == name)
    found: bytes | None = connection.execute(wanted).scalar()
    if found is None:
        try:
            with connection.begin_nested():
                connection.execute(insert(secrets).values(name=name, value=RealEntropy().random_bytes(KEY_BYTES)))
        except IntegrityError:
            pass  # Another manager has made it meanwhile.
        found = connection.execute(wanted).scalar_one()
    return found

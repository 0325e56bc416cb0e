"""The lease: at most one manager makes changes to the catalog, and proves it inside the transaction of each change.

The holder renews the lease; another manager takes it over when it has expired, which raises its epoch. A change locks
the lease's row and compares holder and epoch first, so a holder that was paused and wakes up late writes nothing. All
times are those of the database.
"""

from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from headrace.manager.catalog.engine import now_ms
from headrace.manager.catalog.tables import leases, managers
from headrace.manager.limits import LEASE_MS, MANAGER_FORGOTTEN_MS
from headrace.manager.problems import ApiProblem

NAME = "changes"


class Instance(NamedTuple):
    """One manager, as the others see it."""

    id: str
    url: str
    version: str


class Standing(NamedTuple):
    """The state of the lease after a heartbeat."""

    epoch: int | None
    """The epoch in which this manager holds the lease; None while another one does."""
    holder: str
    holder_url: str
    """Empty if the holder is not listed."""


class LeaseLost(ApiProblem):
    """Another manager holds the lease."""

    def __init__(self) -> None:
        super().__init__(503, "another manager has taken over the changes of the catalog: send the request again")


def beat(connection: Connection, instance: Instance, *, now: int, started_ms: int) -> Standing:
    """Record that a manager is alive, and renew the lease, or take it over if it has expired."""
    epoch, holder = _claimed(connection, instance, now)
    _record(connection, instance, now, started_ms)
    url = connection.execute(select(managers.c.url).where(managers.c.id == holder)).scalar()
    return Standing(epoch if holder == instance.id else None, holder, url or "")


def _claimed(connection: Connection, instance: Instance, now: int) -> tuple[int, str]:
    """Return epoch and holder of the lease."""
    row = connection.execute(select(leases).where(leases.c.name == NAME).with_for_update()).one()
    if row.holder != instance.id and row.expires_ms > now:
        return row.epoch, row.holder
    epoch = row.epoch if row.holder == instance.id else row.epoch + 1
    renewed = {"holder": instance.id, "epoch": epoch, "expires_ms": now + LEASE_MS}
    connection.execute(update(leases).where(leases.c.name == NAME).values(renewed))
    return epoch, instance.id


def _record(connection: Connection, instance: Instance, now: int, started_ms: int) -> None:
    mine = managers.c.id == instance.id
    if connection.execute(update(managers).where(mine).values(seen_ms=now)).rowcount == 0:
        connection.execute(insert(managers).values(started_ms=started_ms, seen_ms=now, **instance._asdict()))
        connection.execute(delete(managers).where(managers.c.seen_ms < now - MANAGER_FORGOTTEN_MS))


def release(connection: Connection, instance: Instance) -> None:
    """Give the lease up and leave the list, because the manager stops."""
    connection.execute(update(leases).where(leases.c.holder == instance.id).values(expires_ms=0))
    connection.execute(delete(managers).where(managers.c.id == instance.id))


def require(connection: Connection, *, holder: str, epoch: int) -> None:
    """Raise LeaseLost unless the lease is held in this epoch; it then stays so until the transaction ends."""
    held = (leases.c.name == NAME) & (leases.c.holder == holder) & (leases.c.epoch == epoch)
    if connection.execute(select(leases.c.epoch).where(held).with_for_update(read=True)).one_or_none() is None:
        raise LeaseLost


def lock(connection: Connection) -> None:
    """Keep every manager from changing the catalog until the transaction ends; the command line changes it so."""
    connection.execute(select(leases.c.epoch).where(leases.c.name == NAME).with_for_update())


class ListedManager(NamedTuple):
    id: str
    url: str
    version: str
    started_ms: int
    seen_ms: int
    is_alive: bool
    holds_lease: bool


def listed(connection: Connection) -> list[ListedManager]:
    now = now_ms(connection)
    lease = connection.execute(select(leases).where(leases.c.name == NAME)).one()
    holder = lease.holder if lease.expires_ms > now else None
    rows = connection.execute(select(managers).order_by(managers.c.started_ms, managers.c.id))
    return [
        ListedManager(**row._mapping, is_alive=row.seen_ms > now - LEASE_MS, holds_lease=row.id == holder)
        for row in rows
        if row.seen_ms > now - MANAGER_FORGOTTEN_MS
    ]

"""Audit records: who changed what, from where, and with which result."""

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from headrace.manager.catalog.engine import now_ms
from headrace.manager.catalog.tables import audit
from headrace.manager.limits import AUDIT_DAYS

RESOURCE_LENGTH_MAX = 1_000
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    user: str
    address: str
    request_id: str
    action: str
    resource: str
    status: int
    detail: str


class StoredAuditRecord(NamedTuple):
    id: int
    time_ms: int
    user: str
    """Empty for the machine's own user while there are no users."""
    address: str
    request_id: str
    action: str
    resource: str
    status: int
    detail: str


def write_record(connection: Connection, record: AuditRecord) -> None:
    connection.execute(
        insert(audit).values(
            time_ms=now_ms(connection),
            user=record.user,
            address=record.address[:64],
            request_id=record.request_id,
            action=record.action,
            resource=record.resource.replace("\0", "")[:RESOURCE_LENGTH_MAX],
            status=record.status,
            detail=record.detail.replace("\0", ""),
        )
    )


def newest_records(
    connection: Connection, *, before: int | None, user: str | None, limit: int
) -> list[StoredAuditRecord]:
    query = select(audit).order_by(audit.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit.c.id < before)
    if user is not None:
        query = query.where(audit.c.user == user)
    return [StoredAuditRecord(*row) for row in connection.execute(query)]


def forget_old_records(connection: Connection, *, now: int) -> None:
    connection.execute(delete(audit).where(audit.c.time_ms < now - AUDIT_DAYS * DAY_MS))

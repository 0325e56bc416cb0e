"""Notes for the audit log about what is in no response message: refusals of Produce and Fetch, and logins by TLS."""

from headrace.broker.audit_log import AuditLog
from headrace.broker.net.connection import Connection
from headrace.core.access.audit import AuditEvent, AuditKind, AuditOutcome
from headrace.model.access import Principal
from headrace.ports.clock import Clock


class AuditNotes:
    def __init__(self, log: AuditLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock

    def refused(self, principal: Principal, host: str, action: str, resource: str) -> None:
        self._log.note(
            AuditEvent(
                kind=AuditKind.REFUSAL,
                action=action,
                principal=str(principal),
                address=host,
                listener="",
                outcome=AuditOutcome.REFUSED,
                wall_ms=self._clock.wall_ms(),
                resources=(resource,),
            )
        )

    def tls_login(self, connection: Connection, reason: str) -> None:
        """Note a client with a certificate, or a handshake that failed for this reason."""
        self._log.note(
            AuditEvent(
                kind=AuditKind.LOGIN,
                action="tls",
                principal="" if reason else str(connection.principal),
                address=connection.peer_host,
                listener=connection.listener_name,
                outcome=AuditOutcome.REFUSED if reason else AuditOutcome.DONE,
                wall_ms=self._clock.wall_ms(),
                errors=(reason,) if reason else (),
            )
        )

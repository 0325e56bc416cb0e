"""Encodes a response message into the frame of a request; one with long arrays some items per turn."""

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

from headrace.broker.api.support.audit import AuditedRequest
from headrace.broker.audit_log import AuditLog
from headrace.broker.net.connection import ResponseSlot
from headrace.broker.services import RequestServices
from headrace.wire.apis import Codec
from headrace.wire.codec import Encoding
from headrace.wire.frames import response_frame


class ResponseWriter:
    """A request whose response is given at once or in a later turn."""

    __slots__ = (
        "_audited",
        "_began_ms",
        "_codec",
        "_correlation_id",
        "_key",
        "_services",
        "_version",
        "_waits_for_audit",
        "slot",
    )

    def __init__(
        self,
        services: RequestServices,
        slot: ResponseSlot,
        codec: Codec,
        *,
        key: int,
        version: int,
        correlation_id: int,
    ) -> None:
        self._services = services
        self.slot = slot
        self._codec = codec
        self._key = key
        self._version = version
        self._correlation_id = correlation_id
        self._began_ms = services.clock.monotonic_ms()
        self._audited: AuditedRequest | None = None
        self._waits_for_audit = False

    def audit(self, log: AuditLog, request: object, client_id: str) -> None:
        """Have the audit log note what the response says about the request."""
        connection = self.slot.connection
        self._audited = AuditedRequest(
            log, connection, key=self._key, request_id=self._correlation_id, client_id=client_id, request=request
        )

    def noting_created(self, topics: Sequence[str], then: Callable[[], None]) -> Callable[[], None]:
        """Return `then`, preceded by a note about topics that the request creates because it names them."""
        audited, services = self._audited, self._services
        if audited is None:
            return then

        def noted() -> None:
            audited.created_topics(topics, services.clock.wall_ms())
            then()

        return noted

    def respond(self, response: object) -> None:
        """Give the response: a message of the API, or its encoded body."""
        if isinstance(response, bytes):
            self._complete(response)
            return
        try:
            failed = has_error(response)
            if failed:
                self._services.metrics.request_errors[self._key] += 1
                self.slot.connection.errors += 1
            if self._audited is not None:
                wall_ms = self._services.clock.wall_ms()
                self._waits_for_audit = self._audited.answered(response, has_error=failed, wall_ms=wall_ms)
            body = self._codec.begin_response(response, self._version)
        except Exception:
            self._give_up()
            raise
        if isinstance(body, bytes):
            self._complete(body)
        else:
            self._encode_more(body)

    def _encode_more(self, encoding: Encoding) -> None:
        if self.slot.connection.closed:
            return
        try:
            body = encoding.step()
        except Exception:
            self._give_up()
            raise
        if body is None:
            quotas = self._services.client_quotas
            self._services.timers.next_turn(quotas.charged(self.slot.connection, lambda: self._encode_more(encoding)))
        else:
            self._complete(body)

    def _give_up(self) -> None:
        """Close the connection: a response that cannot be encoded would block all later ones."""
        self.slot.connection.closing = True
        self.slot.connection.mark_dirty()

    def _complete(self, body: bytes) -> None:
        self._services.metrics.request_answered(self._key, self._services.clock.monotonic_ms() - self._began_ms)
        frame = response_frame(self._key, self._version, self._correlation_id, body)
        log = self._services.audit_log
        if log is None or not self._waits_for_audit:
            self.slot.complete(frame)
        else:
            log.when_written(lambda: self.slot.complete(frame))


def has_error(message: Any, code: int | None = None) -> bool:
    """Return whether a response has an error, or this one, at its top level or in any part."""
    return _has_error((message,), code)


def _has_error(messages: Sequence[Any], code: int | None) -> bool:
    """Check messages of one type."""
    if not messages:
        return False
    has_code, parts = _error_fields(type(messages[0]))
    if has_code and any(message.error_code and code in (None, message.error_code) for message in messages):
        return True
    return any(_has_error(getattr(message, name) or (), code) for name in parts for message in messages)


_ERROR_FIELDS: dict[type, tuple[bool, tuple[str, ...]]] = {}


def _error_fields(message_type: type) -> tuple[bool, tuple[str, ...]]:
    """Return whether such messages have an error code, and which of their arrays hold parts that may have one."""
    found = _ERROR_FIELDS.get(message_type)
    if found is None:
        hints = get_type_hints(message_type)
        parts = tuple(name for name, hint in hints.items() if _may_hold_errors(hint))
        found = _ERROR_FIELDS[message_type] = ("error_code" in hints, parts)
    return found


def _may_hold_errors(hint: object) -> bool:
    return any(
        any(_error_fields(part)) if isinstance(part, type) and is_dataclass(part) else _may_hold_errors(part)
        for part in get_args(hint)
    )

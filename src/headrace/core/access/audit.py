"""Decides what the audit log says: every change, and of equal logins and refusals the first and a count."""

from enum import StrEnum
from typing import NamedTuple

from headrace.model.limits import AUDIT_COUNTED_MAX, AUDIT_RESOURCES_MAX


class AuditKind(StrEnum):
    CHANGE = "change"
    LOGIN = "login"
    REFUSAL = "refusal"


class AuditOutcome(StrEnum):
    DONE = "done"
    PARTLY_DONE = "partly done"
    """Some parts of the request failed: those of the errors."""
    REFUSED = "refused"
    """For lack of permission, or of a valid login."""
    FAILED = "failed"


NO_REQUEST_ID = -1
OTHERS = "(others)"
"""Stands for what differs among refusals that are counted together."""


class AuditEvent(NamedTuple):
    kind: AuditKind
    action: str
    """The name of the API, or the mechanism of a login."""
    principal: str
    address: str
    listener: str
    outcome: AuditOutcome
    wall_ms: int
    request_id: int = NO_REQUEST_ID
    client_id: str = ""
    resources: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    times: int = 1
    since_ms: int | None = None
    """When the first of several events came; `wall_ms` is when the last one did."""


class _Window:
    __slots__ = ("count", "ends_ms", "first_wall_ms", "last")

    def __init__(self, last: AuditEvent, ends_ms: float) -> None:
        self.last = last
        self.ends_ms = ends_ms
        self.count = 0
        """Events since the line that began the window."""
        self.first_wall_ms = 0


class AuditTrail:
    """Events that are equal but for their time and request are counted in a window that begins with the first.

    Its memory is limited by AUDIT_COUNTED_MAX windows. Events beyond that share one window of their kind.
    """

    def __init__(self, window_ms: float) -> None:
        self._window_ms = window_ms
        self._windows: dict[tuple[object, ...], _Window] = {}
        """In the order in which they end."""

    def __len__(self) -> int:
        return len(self._windows)

    def note(self, event: AuditEvent, now_ms: float) -> list[AuditEvent]:
        """Return the events that are written now."""
        if event.kind is AuditKind.CHANGE:
            return _in_lines(event)
        key = _key(event)
        window = self._windows.get(key)
        if window is None and len(self._windows) >= AUDIT_COUNTED_MAX:
            event = _of_others(event)
            key = _key(event)
            window = self._windows.get(key)
        if window is None:
            self._windows[key] = _Window(event, now_ms + self._window_ms)
            return _in_lines(event)
        if not window.count:
            window.first_wall_ms = event.wall_ms
        window.count += 1
        window.last = event
        return []

    def due(self, now_ms: float) -> list[AuditEvent]:
        """Return the counts of the windows that have ended. A window with a count is followed by another one."""
        told: list[AuditEvent] = []
        ended: list[tuple[tuple[object, ...], _Window]] = []
        for key, window in self._windows.items():
            if window.ends_ms > now_ms:
                break
            ended.append((key, window))
        for key, window in ended:
            del self._windows[key]
            if window.count:
                told.append(_counted(window))
                self._windows[key] = _Window(window.last, now_ms + self._window_ms)
        return told

    def rest(self) -> list[AuditEvent]:
        """Return the counts of all windows, and end them."""
        told = [_counted(window) for window in self._windows.values() if window.count]
        self._windows.clear()
        return told

    @property
    def next_ms(self) -> float | None:
        """Return when the next window ends; None if there is none."""
        return next((window.ends_ms for window in self._windows.values()), None)


def _key(event: AuditEvent) -> tuple[object, ...]:
    return (
        event.kind, event.action, event.principal, event.address, event.listener, event.outcome, event.resources,
        event.errors,
    )  # fmt: skip


def _of_others(event: AuditEvent) -> AuditEvent:
    return event._replace(
        action=OTHERS, principal=OTHERS, address=OTHERS, listener=OTHERS, client_id="", request_id=NO_REQUEST_ID,
        resources=(), errors=(),
    )  # fmt: skip


def _counted(window: _Window) -> AuditEvent:
    return window.last._replace(times=window.count, since_ms=window.first_wall_ms)


def _in_lines(event: AuditEvent) -> list[AuditEvent]:
    """Return an event for each AUDIT_RESOURCES_MAX resources, or errors, of a large request."""
    size = AUDIT_RESOURCES_MAX
    parts = max(1, -(-len(event.resources) // size), -(-len(event.errors) // size))
    if parts == 1:
        return [event]
    cuts = [slice(size * part, size * (part + 1)) for part in range(parts)]
    return [event._replace(resources=event.resources[cut], errors=event.errors[cut]) for cut in cuts]

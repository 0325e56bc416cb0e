"""Encoded responses to producers that are not sent yet: they wait for a commit, or turn into an error."""

from collections import deque
from struct import Struct

from headrace.broker.net.connection import ResponseSlot
from headrace.broker.timers import Timer, Timers
from headrace.model.errors import ErrorCode
from headrace.model.limits import PRODUCE_WAIT_MS_MAX
from headrace.wire.produce import with_error

DEADLINE_GRAIN_MS = 10
"""The shortest time between two checks of the deadlines."""

_NEVER_MS = float("inf")
_ERROR = Struct(">h")

_COORDINATOR_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}
"""Errors of a write as clients of a coordinator get them. All others become COORDINATOR_NOT_AVAILABLE."""


class CoordinatorResponseSlot(ResponseSlot, eq=False):
    """The response of a coordinator, encoded before its records are written. It has one error field for each item."""

    errors_at: tuple[int, ...]
    """Positions of the error fields."""

    def refuse(self, error: ErrorCode) -> None:
        code = _COORDINATOR_ERRORS.get(error, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert isinstance(self.parts, bytes | bytearray)
        patched = bytearray(self.parts)
        for at in self.errors_at:
            _ERROR.pack_into(patched, at, code)
        self.parts = patched


AckWait = tuple[ResponseSlot, int, int, float]
"""(slot, end offset that must be committed, position of the error field, deadline in ms)."""


class AckWaits:
    """The responses of one partition that wait, in the order of their requests.

    Nearly all of them are sent long before their deadline, so one timer serves all: it is set for the first deadline,
    and when it fires, the responses that still wait are checked. A response that was sent before costs nothing more.
    """

    __slots__ = ("_timer", "_timer_ms", "_timers", "_waits")

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._timer: Timer | None = None
        self._timer_ms = _NEVER_MS
        self._waits: deque[AckWait] = deque()

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, slot: ResponseSlot, end_offset: int, error_at: int, timeout_ms: int, now_ms: float) -> None:
        """HOT where acknowledgements wait for a sync."""
        deadline_ms = now_ms + min(timeout_ms, PRODUCE_WAIT_MS_MAX)
        slot.waits += 1
        self._waits.append((slot, end_offset, error_at, deadline_ms))
        if deadline_ms < self._timer_ms:
            self._look_at(deadline_ms)

    def committed(self, high_watermark: int) -> None:
        """HOT where acknowledgements wait for a sync. Release the responses to records below the high watermark."""
        waits = self._waits
        while waits and waits[0][1] <= high_watermark:
            slot = waits.popleft()[0]
            slot.waits -= 1
            if not slot.waits:
                slot.connection.mark_dirty()

    def fail(self, error: ErrorCode) -> list[ResponseSlot]:
        """Send the error to every request that waits: nothing more will be committed here.

        Returns the responses that wait for no other partition.
        """
        waits, self._waits = self._waits, deque()
        for wait in waits:
            _refuse(wait, error)
        if self._timer is not None:
            self._timers.cancel(self._timer)
            self._timer, self._timer_ms = None, _NEVER_MS
        return [slot for slot, *_ in waits if not slot.waits]

    def _look_at(self, deadline_ms: float) -> None:
        if self._timer is not None:
            self._timers.cancel(self._timer)
        self._timer_ms = deadline_ms
        self._timer = self._timers.at(deadline_ms, self._expire)

    def _expire(self) -> None:
        now_ms = self._timers.now_ms()
        expired = [wait for wait in self._waits if wait[3] <= now_ms]
        self._waits = deque(wait for wait in self._waits if wait[3] > now_ms)
        self._timer, self._timer_ms = None, _NEVER_MS
        if self._waits:
            first_ms = min(wait[3] for wait in self._waits)
            self._look_at(max(first_ms, now_ms + DEADLINE_GRAIN_MS))
        for wait in expired:
            _refuse(wait, ErrorCode.REQUEST_TIMED_OUT)


def _refuse(wait: AckWait, error: ErrorCode) -> None:
    slot, _end_offset, error_at, _deadline_ms = wait
    patch_error(slot, error_at, error)
    slot.waits -= 1
    if not slot.waits:
        slot.connection.mark_dirty()


def patch_error(slot: ResponseSlot, error_at: int, error: ErrorCode) -> None:
    """Replace the success in an encoded response with an error.

    A request with acks=0 has no response, so the broker closes its connection instead.
    """
    if slot.parts is None:
        slot.connection.closing = True
        slot.connection.mark_dirty()
        return
    if isinstance(slot, CoordinatorResponseSlot):
        slot.refuse(error)
        return
    assert isinstance(slot.parts, bytes | bytearray)
    slot.parts = with_error(slot.parts, error_at, error)

"""Answers to producers that are sealed and not sent: they wait for a commit, or turn into an error after all."""

from headrace.broker.net.connection import Answer
from headrace.broker.timers import Timers
from headrace.model.errors import ErrorCode
from headrace.model.limits import PRODUCE_WAIT_MS_MAX
from headrace.wire.produce import with_error

_NONE = ErrorCode.NONE


class AckWait:
    """An answer that waits until `end_offset` is committed here, or until its deadline."""

    __slots__ = ("_answer", "_error_at", "_timer", "_timers", "end_offset")

    def __init__(self, answer: Answer, end_offset: int, error_at: int, timers: Timers, timeout_ms: int) -> None:
        self._answer: Answer | None = answer
        self.end_offset = end_offset
        self._error_at = error_at
        self._timers = timers
        self._timer = timers.after(min(timeout_ms, PRODUCE_WAIT_MS_MAX), self._expire)
        answer.waits += 1

    @property
    def done(self) -> bool:
        return self._answer is None

    def end(self, error: ErrorCode = _NONE) -> None:
        answer = self._answer
        if answer is None:
            return
        self._answer = None
        self._timers.cancel(self._timer)
        if error is not _NONE:
            mend(answer, self._error_at, error)
        answer.waits -= 1
        if not answer.waits:
            answer.connection.mark_dirty()

    def _expire(self) -> None:
        self.end(ErrorCode.REQUEST_TIMED_OUT)


def mend(answer: Answer, error_at: int, error: ErrorCode) -> None:
    """Turn the success that was sealed into an answer into an error.

    A producer with acks=0 is told nothing: its answer has no parts, and a failure shows by a closed connection.
    """
    if answer.parts is None:
        answer.connection.closing = True
        answer.connection.mark_dirty()
        return
    assert isinstance(answer.parts, bytes | bytearray)
    answer.parts = with_error(answer.parts, error_at, error)

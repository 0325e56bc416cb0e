"""The log of one node: an event and its fields per line, as text for people or as JSON for machines.

Every node has its own logger; nothing global is configured. Fields often hold input of clients, so control characters
are escaped, and the lines that one event may write per second are limited.
"""

import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from headrace.ports.clock import Clock

LEVEL_WIDTH = 9
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "off": 50}
EVENT_LINES_PER_SECOND_MAX = 20
"""Lines per second of one event; further ones are counted, and the count is in the next line of the event."""
EVENTS_REMEMBERED_MAX = 256
FIELD_LENGTH_MAX = 1000
"""Characters of one field."""
TRACEBACK_LENGTH_MAX = 20_000

FieldValue = str | int | float | bool | None


class NodeLogger:
    """`write` gets each line with its newline; `context` (the node's id) is in every line."""

    def __init__(
        self,
        *,
        clock: Clock,
        write: Callable[[str], object],
        format: str = "console",
        level: str = "info",
        **context: FieldValue,
    ) -> None:
        self._clock = clock
        self._write = write
        self._format = format
        self._threshold = LEVELS[level]
        self._context = context
        self._recent: dict[str, _Recent] = {}

    def debug(self, event: str, **fields: FieldValue) -> None:
        self._log("debug", event, fields)

    def info(self, event: str, **fields: FieldValue) -> None:
        self._log("info", event, fields)

    def warning(self, event: str, **fields: FieldValue) -> None:
        self._log("warning", event, fields)

    def error(self, event: str, *, cause: BaseException | None = None, **fields: FieldValue) -> None:
        """Log an error; with `cause`, its traceback follows."""
        self._log("error", event, fields, cause)

    def _log(self, level: str, event: str, fields: dict[str, FieldValue], cause: BaseException | None = None) -> None:
        if LEVELS[level] < self._threshold:
            return
        unsaid = self._admitted(event)
        if unsaid is None:
            return
        text = self._text(level, event, fields, unsaid, cause)
        with suppress(OSError, ValueError):  # a log that is full or closed is no reason to stop serving
            self._write(text)

    def _text(
        self, level: str, event: str, fields: dict[str, FieldValue], unsaid: int, cause: BaseException | None
    ) -> str:
        shown: dict[str, object] = {
            name: _clean(value, FIELD_LENGTH_MAX) if isinstance(value, str) else value
            for name, value in (*self._context.items(), *fields.items())
        }
        if unsaid:
            shown["lines_left_out"] = unsaid
        steps = _traceback_lines(cause) if cause is not None else []
        timestamp, event = timestamp_text(self._clock.wall_ms()), _clean(event, FIELD_LENGTH_MAX)
        if self._format == "json":
            line = {"timestamp": timestamp, "level": level, "event": event, **shown}
            if steps:
                line["traceback"] = steps
            return msgspec.json.encode(line).decode() + "\n"
        words = (f"{name}={_quoted(value)}" for name, value in shown.items())
        first = " ".join((timestamp, f"[{level:<{LEVEL_WIDTH}}]", event, *words))
        return "".join(f"{part}\n" for part in (first, *(f"    {step}" for step in steps)))

    def _admitted(self, event: str) -> int | None:
        """Return the number of suppressed lines of this event since its last line; None to suppress this line too."""
        now_ms = self._clock.monotonic_ms()
        recent = self._recent.get(event)
        if recent is None:
            if len(self._recent) >= EVENTS_REMEMBERED_MAX:
                self._recent.clear()
            recent = self._recent[event] = _Recent(now_ms)
        if now_ms - recent.since_ms >= 1000:
            recent.since_ms, recent.lines = now_ms, 0
        if recent.lines >= EVENT_LINES_PER_SECOND_MAX:
            recent.unsaid += 1
            return None
        recent.lines += 1
        unsaid, recent.unsaid = recent.unsaid, 0
        return unsaid


class _Recent:
    __slots__ = ("lines", "since_ms", "unsaid")

    def __init__(self, since_ms: float) -> None:
        self.since_ms = since_ms
        self.lines = 0
        self.unsaid = 0


def _quoted(value: object) -> str:
    """Format a field for people; in quotes if its end would not be clear without them."""
    text = str(value)
    return repr(text) if any(mark in text for mark in " =\"'") else text


def _traceback_lines(cause: BaseException) -> list[str]:
    """Return the last lines of the traceback, each escaped, so that none can pass for a line of the log."""
    text = "".join(traceback.format_exception(cause))[-TRACEBACK_LENGTH_MAX:]
    return [_clean(line, FIELD_LENGTH_MAX) for line in text.split("\n") if line]


def timestamp_text(wall_ms: int) -> str:
    """Return a time in UTC, as in all lines that the broker writes."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _clean(text: str, length_max: int) -> str:
    """Escape line breaks and terminal sequences, and cut the text to the limit."""
    shown = text if len(text) <= length_max else f"{text[:length_max]}..."
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in shown)

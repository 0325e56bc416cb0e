"""Times and durations as users write them: dates, clock times, milliseconds, `15m` ago, `90s` long."""

import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>ms|s|m|h|d)(?: ago)?")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>ms|s|m|h|d)")
_MILLISECONDS = re.compile(r"[0-9]{11,15}")
EXAMPLES = "2026-05-31, 2026-05-31T12:00:00Z, 15m (ago), or milliseconds since 1970"


def parse_time(text: str, *, now: datetime) -> int:
    """Return milliseconds since 1970. A time without a zone is in the zone of `now`; ValueError shows the formats."""
    wanted = text.strip()
    if _MILLISECONDS.fullmatch(wanted):
        return int(wanted)
    ago = _AGO.fullmatch(wanted)
    if ago:
        return _milliseconds(now - timedelta(**{_UNITS[ago["unit"]]: int(ago["count"])}))
    try:
        moment = datetime.fromisoformat(wanted)
    except ValueError:
        raise ValueError(f'"{text}" is not a time: write {EXAMPLES}') from None
    if moment.tzinfo is None:
        # astimezone of a naive time applies the rules of that day (summer time); a fixed offset would not.
        moment = moment.astimezone() if now.tzinfo is None else moment.replace(tzinfo=now.tzinfo)
    return _milliseconds(moment)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def time_text(timestamp_ms: int) -> str:
    """Return a timestamp in UTC with milliseconds; a dash for a record without a timestamp."""
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_duration(text: str) -> int:
    """Return milliseconds; ValueError shows the format."""
    found = _DURATION.fullmatch(text.strip())
    if not found:
        raise ValueError(f'"{text}" is not a duration: write 500ms, 90s, 15m, 2h or 7d')
    return int(found["count"]) * _UNIT_MS[found["unit"]]


def duration_text(duration_ms: int) -> str:
    """Return a duration in the largest unit that fits: 90 s is 1.5 min."""
    for unit, size in (("d", "d"), ("h", "h"), ("m", "min"), ("s", "s")):
        if duration_ms >= _UNIT_MS[unit]:
            count = duration_ms / _UNIT_MS[unit]
            return f"{count:.0f} {size}" if count >= 10 or count == int(count) else f"{count:.1f} {size}"
    return f"{duration_ms} ms"

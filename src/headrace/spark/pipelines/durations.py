"""Parse durations in a pipeline file: `500 ms`, `10 seconds`, `1 hour`."""

import re

EXAMPLES = "500 ms, 10 seconds, 5 minutes, 1 hour or 2 days"
DURATION_MS_MAX = 366 * 86_400_000
"""A year: a longer duration is probably a mistake."""

_DURATION = re.compile(r"(?P<count>[0-9]{1,12})\s*(?P<unit>[a-z]+)")
_UNIT_MS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}


def parse_duration(text: str) -> int:
    """Return milliseconds; ValueError says how to write a duration."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or found["unit"] not in _UNIT_MS:
        raise ValueError(f'"{text}" is not a duration: write {EXAMPLES}')
    duration_ms = int(found["count"]) * _UNIT_MS[found["unit"]]
    if duration_ms > DURATION_MS_MAX:
        raise ValueError(f'"{text}" is longer than a year')
    return duration_ms


def spark_interval(duration_ms: int) -> str:
    """Return the duration in Spark's notation."""
    return f"{duration_ms} milliseconds"

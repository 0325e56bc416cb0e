"""Points in time as people write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from headrace.operations.times import parse_time, time_text

NOW = datetime(2026, 5, 31, 12, 0, 0, tzinfo=UTC)
NOW_MS = 1_780_228_800_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1780228800000", NOW_MS),
        ("2026-05-31T12:00:00Z", NOW_MS),
        ("2026-05-31T14:00:00+02:00", NOW_MS),
        ("2026-05-31 12:00", NOW_MS),
        ("2026-05-31", NOW_MS - 12 * 3_600_000),
        ("2026-05-31T12:00:00.250Z", NOW_MS + 250),
        ("15m", NOW_MS - 900_000),
        ("2h ago", NOW_MS - 7_200_000),
        ("1d", NOW_MS - 86_400_000),
        ("500ms", NOW_MS - 500),
    ],
)
def test_times_are_read(text: str, milliseconds: int) -> None:
    assert parse_time(text, now=NOW) == milliseconds


def test_a_time_without_a_zone_is_local() -> None:
    local = NOW.astimezone(timezone(timedelta(hours=2)))
    assert parse_time("2026-05-31T14:00", now=local) == NOW_MS


@pytest.mark.parametrize("text", ["", "yesterday", "12:00", "2026-13-01", "15", "-5m", "15 parsecs"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="15m"):
        parse_time(text, now=NOW)


def test_times_are_written() -> None:
    assert time_text(NOW_MS + 7) == "2026-05-31T12:00:00.007Z"
    assert time_text(-1) == "-"
    assert time_text(2**62) == str(2**62)

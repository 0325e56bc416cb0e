"""History in the catalog: records written and lag, by minute, for seven days."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection, Table, delete, insert, select

from headrace.manager.access.audit import forget_old_records
from headrace.manager.catalog.engine import now_ms
from headrace.manager.catalog.tables import lag_minutes, topic_minutes
from headrace.manager.limits import HISTORY_DAYS, HISTORY_ROWS_PER_MINUTE_MAX
from headrace.model.ids import TopicPartition

K = TypeVar("K")
MINUTE_MS = 60_000
MINUTES_PER_DAY = 1_440


class Measured(NamedTuple):
    """Offsets of a cluster at one instant."""

    ends: Mapping[TopicPartition, int]
    committed: Mapping[str, Mapping[TopicPartition, int]]
    """Committed offsets by group."""


class WrittenMinute(NamedTuple):
    minute: int
    records: int


class LagMinute(NamedTuple):
    minute: int
    topic: str
    lag: int


def written_between(before: Measured, after: Measured) -> dict[str, int]:
    """Return the records written to each topic; a partition that is new counts from its first offset."""
    written: dict[str, int] = {}
    for place, end in after.ends.items():
        count = end - before.ends.get(place, 0)
        if count > 0:  # A topic that was created again begins at 0.
            written[place.topic] = written.get(place.topic, 0) + count
    return written


def lags(measured: Measured) -> dict[tuple[str, str], int]:
    """Return the lag by group and topic."""
    found: dict[tuple[str, str], int] = {}
    for group, offsets in measured.committed.items():
        for place, offset in offsets.items():
            if place in measured.ends:
                key = group, place.topic
                found[key] = found.get(key, 0) + max(measured.ends[place] - offset, 0)
    return found


def record_minute(connection: Connection, before: Measured, after: Measured) -> None:
    """Store the minute that ends now; of many topics and groups, those with the most records."""
    minute = now_ms(connection) // MINUTE_MS
    written = largest(written_between(before, after))
    _replace(connection, topic_minutes, minute, [{"topic": topic, "records": count} for topic, count in written])
    behind = largest(lags(after))
    _replace(connection, lag_minutes, minute, [{"group": key[0], "topic": key[1], "lag": lag} for key, lag in behind])


def largest(counts: Mapping[K, int]) -> list[tuple[K, int]]:
    return sorted(counts.items(), key=lambda item: -item[1])[:HISTORY_ROWS_PER_MINUTE_MAX]


def _replace(connection: Connection, table: Table, minute: int, rows: list[dict[str, object]]) -> None:
    connection.execute(delete(table).where(table.c.minute == minute))  # Of a holder that has lost the lease since.
    if rows:
        connection.execute(insert(table), [{"minute": minute, **row} for row in rows])


def forget_old(connection: Connection) -> None:
    now = now_ms(connection)
    oldest = now // MINUTE_MS - HISTORY_DAYS * MINUTES_PER_DAY
    for table in (topic_minutes, lag_minutes):
        connection.execute(delete(table).where(table.c.minute < oldest))
    forget_old_records(connection, now=now)


def written_minutes(connection: Connection, topic: str, minutes: int) -> list[WrittenMinute]:
    recent = topic_minutes.c.minute >= now_ms(connection) // MINUTE_MS - minutes
    query = select(topic_minutes.c.minute, topic_minutes.c.records).where(topic_minutes.c.topic == topic, recent)
    return [WrittenMinute(*row) for row in connection.execute(query.order_by(topic_minutes.c.minute))]


def lag_history(connection: Connection, group: str, minutes: int) -> list[LagMinute]:
    recent = lag_minutes.c.minute >= now_ms(connection) // MINUTE_MS - minutes
    query = select(lag_minutes.c.minute, lag_minutes.c.topic, lag_minutes.c.lag).where(
        lag_minutes.c.group == group, recent
    )
    return [LagMinute(*row) for row in connection.execute(query.order_by(lag_minutes.c.minute, lag_minutes.c.topic))]

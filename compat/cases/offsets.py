"""Offsets by place and by time, and records that are deleted from the front."""

from compat.cases.case import Case, assert_refused, assert_same, now_ms, sample
from compat.client import Client, Feature, FoundOffset, Message, Sending, Start
from headrace.model.errors import ErrorCode

STEP_MS = 1000


def earliest_and_latest(client: Client, topic: str) -> None:
    assert client.bounds(topic) == (0, 0)
    client.send(topic, sample(7, seed=21))
    assert client.bounds(topic) == (0, 7)


def _assert_found(found: FoundOffset, offset: int, timestamp_ms: int) -> None:
    assert found.offset == offset
    assert found.timestamp_ms in (timestamp_ms, -1)  # not every client tells the time


def by_time(client: Client, topic: str) -> None:
    """The first record at or after a time, even inside a batch."""
    base = now_ms() - 600_000
    for start in (0, 10):
        messages = [Message(value=b"v", timestamp_ms=base + STEP_MS * (start + number)) for number in range(10)]
        client.send(topic, messages, Sending(compression="gzip"))
    _assert_found(client.offset_at(topic, base - STEP_MS), 0, base)
    for offset in (0, 4, 9, 10, 19):
        exact = base + STEP_MS * offset
        _assert_found(client.offset_at(topic, exact), offset, exact)
        _assert_found(client.offset_at(topic, exact - STEP_MS // 2), offset, exact)
    _assert_found(client.offset_at(topic, base + STEP_MS * 100), -1, -1)


def by_time_as_written(client: Client, topic: str) -> None:
    """For clients that cannot set a time: before all, and after all."""
    before = now_ms() - 60_000
    client.send(topic, [Message(value=b"v")])
    assert client.offset_at(topic, before).offset == 0
    assert client.offset_at(topic, now_ms() + 60_000).offset == -1


def max_timestamp(client: Client, topic: str) -> None:
    base = now_ms() - 600_000
    order = (3, 9, 1, 7, 2)
    client.send(topic, [Message(value=b"v", timestamp_ms=base + STEP_MS * place) for place in order])
    client.send(topic, [Message(value=b"v", timestamp_ms=base)])
    _assert_found(client.offset_of_max_timestamp(topic), 1, base + STEP_MS * 9)


def delete_records(client: Client, topic: str) -> None:
    messages = sample(20, seed=22)
    client.send(topic, messages)
    assert client.delete_records(topic, 12) == 12
    assert client.bounds(topic) == (12, 20)
    assert_same(client.read(topic, 8, Start.EARLIEST), messages[12:], first_offset=12)
    assert_refused(ErrorCode.OFFSET_OUT_OF_RANGE, client.delete_records, topic, 21)
    assert client.delete_records(topic, -1) == 20
    assert client.bounds(topic) == (20, 20)


CASES = (
    Case(group="Offsets", name="earliest and latest", run=earliest_and_latest, needs=frozenset({Feature.KEYS})),
    Case(
        group="Offsets",
        name="by time",
        run=by_time,
        needs=frozenset({Feature.OFFSETS_BY_TIME, Feature.TIMESTAMPS}),
    ),
    Case(
        group="Offsets",
        name="by time, as written",
        run=by_time_as_written,
        needs=frozenset({Feature.OFFSETS_BY_TIME}),
    ),
    Case(
        group="Offsets",
        name="max timestamp",
        run=max_timestamp,
        needs=frozenset({Feature.MAX_TIMESTAMP, Feature.TIMESTAMPS}),
    ),
    Case(
        group="Offsets",
        name="delete records",
        run=delete_records,
        needs=frozenset({Feature.DELETE_RECORDS, Feature.KEYS}),
    ),
)

"""Reading: from the start, the end, an offset, the middle of a batch; waiting; limits; isolation."""

import time

from compat.cases.case import Case, assert_same, sample
from compat.client import LONG_POLL_MS, Client, Feature, Message, Sending, Start

POSITIONED_S = 0.3
"""Time for a reader to send its first fetch, which the broker then holds."""

WOKEN_S_MAX = LONG_POLL_MS / 1000 / 2
SMALL_FETCH_BYTES = 1000


def from_earliest(client: Client, topic: str) -> None:
    messages = sample(20, seed=11)
    client.send(topic, messages)
    assert_same(client.read(topic, 20, Start.EARLIEST), messages)


def from_an_offset(client: Client, topic: str) -> None:
    messages = sample(40, seed=12)
    for message in (messages[:10], messages[10:20], messages[20:]):
        client.send(topic, message)
    for offset in (0, 9, 10, 39):
        assert_same(client.read(topic, 40 - offset, offset), messages[offset:], first_offset=offset)


def from_inside_a_batch(client: Client, topic: str) -> None:
    """The broker sends whole batches; what comes before the offset asked for is the client's to leave out."""
    messages = sample(50, seed=13)
    client.send(topic, messages, Sending(compression="gzip"))
    for offset in (1, 25, 49):
        assert_same(client.read(topic, 50 - offset, offset), messages[offset:], first_offset=offset)


def from_latest_by_long_poll(client: Client, topic: str) -> None:
    """A reader at the end is woken by the next write, not by the end of its wait."""
    client.send(topic, sample(5, seed=14))
    reader = client.reader(topic, Start.LATEST)
    try:
        assert reader.read(1, POSITIONED_S) == []
        new = [Message(value=b"new")]
        began = time.monotonic()
        client.send(topic, new)
        assert_same(reader.read(1), new, first_offset=5)
        assert time.monotonic() - began < WOKEN_S_MAX, "the waiting fetch was not woken"
    finally:
        reader.close()


def committed_only(client: Client, topic: str) -> None:
    messages = sample(10, seed=15)
    client.send(topic, messages)
    assert_same(client.read(topic, 10, committed_only=True), messages)


def batch_above_the_fetch_limit(client: Client, topic: str) -> None:
    """The first batch comes even if it is larger than what was asked for; else a reader is stuck for ever."""
    messages = [Message(value=b"%d" % number * 20_000) for number in range(3)]
    for message in messages:
        client.send(topic, [message])
    assert_same(client.read(topic, 3, partition_bytes_max=SMALL_FETCH_BYTES), messages)


def growing_topic(client: Client, topic: str) -> None:
    """One reader over many small writes, as a consumer lives."""
    reader = client.reader(topic, 0)
    try:
        messages = sample(30, seed=16)
        received = []
        for start in range(0, 30, 6):
            client.send(topic, messages[start : start + 6])
            received += reader.read(6)
        assert_same(received, messages)
    finally:
        reader.close()


def many_partitions(client: Client, topic: str) -> None:
    """One consumer of all partitions, in several rounds: what changed must come, whatever did not."""
    partitions = client.describe_topic(topic).partitions
    sent = [Message(value=b"%d %d" % (number, number * 7), partition=number % partitions) for number in range(120)]
    reader = client.reader(topic, 0, partitions=range(partitions))
    try:
        for start, stop in ((0, 100), (100, 101), (101, 120)):
            part = sent[start:stop]
            client.send(topic, part)
            received = reader.read(len(part))
            for partition in range(partitions):
                mine = [record.value for record in received if record.partition == partition]
                assert mine == [message.value for message in part if message.partition == partition]
    finally:
        reader.close()


KEYS = frozenset({Feature.KEYS})
CASES = (
    Case(group="Fetch", name="from the earliest", run=from_earliest, needs=KEYS),
    Case(group="Fetch", name="from an offset", run=from_an_offset, needs=KEYS),
    Case(group="Fetch", name="from inside a batch", run=from_inside_a_batch, needs=KEYS),
    Case(group="Fetch", name="from the latest, by long poll", run=from_latest_by_long_poll, needs=KEYS),
    Case(group="Fetch", name="a growing topic", run=growing_topic, needs=KEYS),
    Case(group="Fetch", name="a batch above the fetch limit", run=batch_above_the_fetch_limit),
    Case(group="Fetch", name="many partitions by one consumer", run=many_partitions, partitions=20),
    Case(group="Fetch", name="read committed", run=committed_only, needs=frozenset({Feature.ISOLATION, Feature.KEYS})),
)

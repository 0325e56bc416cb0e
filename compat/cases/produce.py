"""Cases about written records: acks, compressions, sizes, keys, headers, times, nulls, idempotence."""

from compat.cases.case import Case, CaseFunction, assert_same, now_ms, sample
from compat.client import COMPRESSIONS, NO_OFFSET, Client, Feature, Message, Sending

LARGE_VALUE_BYTES = 900_000
OVERSIZE_BYTES = 3_000_000
CLOCK_SLACK_MS = 1000
LOG_APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}


def _round_trip(sending: Sending) -> CaseFunction:
    def run(client: Client, topic: str) -> None:
        messages = sample(200, seed=3)
        offsets = client.send(topic, messages, sending)
        if sending.acks and Feature.DELIVERY_REPORTS in client.features:
            assert offsets == list(range(200))
        else:
            assert set(offsets) == {NO_OFFSET}
        assert_same(client.read(topic, 200), messages)

    return run


def large_records(client: Client, topic: str) -> None:
    """Each a batch of its own, and too large for a client's first buffer."""
    for place, compression in enumerate(("none", "lz4")):
        (message,) = sample(1, seed=4 + place, value_size=10)
        message = Message(key=message.key, value=b"%d" % place + b"0123456789abcdef" * (LARGE_VALUE_BYTES // 16))
        client.send(topic, [message], Sending(compression=compression))
        assert_same(client.read(topic, 1, place), [message], first_offset=place)


def above_the_default_limit(client: Client, topic: str) -> None:
    message = Message(value=b"abcdefgh" * (OVERSIZE_BYTES // 8))
    client.send(topic, [message])
    assert_same(client.read(topic, 1), [message])


def tiny_records(client: Client, topic: str) -> None:
    messages = [Message(value=b"%d" % (number % 10)) for number in range(5000)]
    client.send(topic, messages, Sending(compression="gzip"))
    assert_same(client.read(topic, 5000), messages)


def partitions_apart(client: Client, topic: str) -> None:
    messages = [Message(value=b"%d" % number, partition=number % 3) for number in range(30)]
    client.send(topic, messages)
    for partition in range(3):
        mine = [message for message in messages if message.partition == partition]
        assert_same(client.read(topic, 10, partition=partition), mine)


def nulls_and_empties(client: Client, topic: str) -> None:
    messages = [
        Message(key=b"k", value=None),
        Message(key=b"k", value=b""),
        Message(key=None, value=b"v"),
        Message(key=b"", value=b"v"),
    ]
    client.send(topic, messages)
    assert_same(client.read(topic, 4), messages)


def headers(client: Client, topic: str) -> None:
    messages = [
        Message(value=b"two of one name", headers=(("a", b"1"), ("a", b"2"))),
        Message(value=b"empty", headers=(("empty", b""),)),
        Message(value=b"none"),
    ]
    client.send(topic, messages)
    assert_same(client.read(topic, 3), messages)


def null_headers(client: Client, topic: str) -> None:
    messages = [Message(value=b"v", headers=(("empty", b""), ("null", None)))]
    client.send(topic, messages)
    assert_same(client.read(topic, 1), messages)


def any_bytes(client: Client, topic: str) -> None:
    messages = [Message(key=bytes(range(256)), value=bytes(range(255, -1, -1)) * 4)]
    client.send(topic, messages)
    assert_same(client.read(topic, 1), messages)


def create_time_is_kept(client: Client, topic: str) -> None:
    base = now_ms() - 60_000
    messages = [Message(value=b"%d" % number, timestamp_ms=base + 1000 * number) for number in range(5)]
    client.send(topic, messages)
    assert [record.timestamp_ms for record in client.read(topic, 5)] == [message.timestamp_ms for message in messages]


def append_time_is_the_brokers(client: Client, topic: str) -> None:
    before = now_ms()
    client.send(topic, [Message(value=b"%d" % number, timestamp_ms=before - 60_000) for number in range(3)])
    for record in client.read(topic, 3):
        assert before - CLOCK_SLACK_MS <= record.timestamp_ms <= now_ms() + CLOCK_SLACK_MS


def idempotent(client: Client, topic: str) -> None:
    """Many small batches, so that several are in flight."""
    messages = sample(300, seed=6)
    for start in range(0, 300, 30):
        client.send(topic, messages[start : start + 30], Sending(idempotent=True))
    assert_same(client.read(topic, 300), messages)
    assert client.bounds(topic) == (0, 300)


CASES = (
    *(
        Case(group="Produce", name=f"acks {text}", run=_round_trip(Sending(acks=acks)), needs=frozenset({Feature.KEYS}))
        for text, acks in (("0", 0), ("1", 1), ("all", -1))
    ),
    *(
        Case(
            group="Produce",
            name=f"compression {codec}",
            run=_round_trip(Sending(compression=codec)),
            needs=frozenset({Feature.KEYS, *([Feature.ZSTD] if codec == "zstd" else [])}),
        )
        for codec in COMPRESSIONS
    ),
    Case(group="Produce", name="tiny records", run=tiny_records),
    Case(group="Produce", name="large records", run=large_records, needs=frozenset({Feature.KEYS})),
    Case(
        group="Produce",
        name="records above the default limit",
        run=above_the_default_limit,
        configs={"max.message.bytes": "4000000"},
    ),
    Case(group="Produce", name="several partitions", run=partitions_apart, partitions=3),
    Case(group="Produce", name="null and empty", run=nulls_and_empties, needs=frozenset({Feature.NULLS, Feature.KEYS})),
    Case(group="Produce", name="headers", run=headers, needs=frozenset({Feature.HEADERS})),
    Case(group="Produce", name="null headers", run=null_headers, needs=frozenset({Feature.NULL_HEADERS})),
    Case(group="Produce", name="any bytes", run=any_bytes, needs=frozenset({Feature.BINARY, Feature.KEYS})),
    Case(group="Produce", name="timestamps", run=create_time_is_kept, needs=frozenset({Feature.TIMESTAMPS})),
    Case(
        group="Produce",
        name="log append time",
        run=append_time_is_the_brokers,
        needs=frozenset({Feature.TIMESTAMPS}),
        configs=LOG_APPEND_TIME,
    ),
    Case(group="Produce", name="idempotent", run=idempotent, needs=frozenset({Feature.IDEMPOTENCE, Feature.KEYS})),
)

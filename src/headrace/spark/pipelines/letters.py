"""Dead letters go back to where they came from: read from their topic, sent again as they were, each once.

What was sent again and how far the letters are read is one transaction, so a kill anywhere repeats or loses none.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.client import EARLIEST, Consumer, ConsumerRecord, OffsetAndMetadata, Producer, TopicPartition
from headrace.client.consuming import Place
from headrace.client.errors import ClientError
from headrace.model.errors import ErrorCode
from headrace.spark.pipelines.failpoints import Failpoint, reach
from headrace.spark.pipelines.output_rows import DEAD_PREFIX

LETTERS_PER_TRANSACTION = 1_000
QUIET_SECONDS_MAX = 30.0
REPLAYED_HEADER = "hr-replayed"
"""How often a record was sent again after it had died."""

Choice = Callable[[ConsumerRecord], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    sent: int
    passed_over: int
    """Letters that were not chosen; they count as dealt with."""


def group_of(pipeline: str) -> str:
    return f"{pipeline}.replay"


def replay(
    settings: Mapping[str, Any], *, pipeline: str, topic: str, chosen: Choice, limit: int | None = None
) -> Replay:
    """Send again what is in the topic now and was not dealt with by an earlier replay."""
    group = group_of(pipeline)
    sent = passed_over = 0
    reading = {**settings, "group.id": group, "isolation.level": "read_committed", "enable.auto.commit": False}
    places = _partitions(settings, topic)
    with (
        Producer(config={**settings, "transactional.id": group}) as producer,
        Consumer(config={**reading, "auto.offset.reset": "earliest"}) as consumer,
    ):
        # The first transaction aborts what a killed replay has left open; until then its offsets are not settled.
        producer.transaction().commit()
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        for letters in _batches(consumer, _seek(consumer, places), ends, limit):
            wanted = [letter for letter in letters if chosen(letter)]
            with producer.transaction() as transaction:
                for letter in wanted:
                    _send_again(producer, letter)
                transaction.commit_offsets(_offsets(letters), group)
                reach(Failpoint.LETTERS_SENT)
            sent += len(wanted)
            passed_over += len(letters) - len(wanted)
    return Replay(sent=sent, passed_over=passed_over)


def reason_of(letter: ConsumerRecord) -> str:
    return dict(letter.headers).get(f"{DEAD_PREFIX}reason", b"").decode(errors="replace")  # type: ignore[union-attr]


def _partitions(settings: Mapping[str, Any], topic: str) -> list[TopicPartition]:
    from headrace.client import Admin
    from headrace.client.errors import BrokerError

    with Admin(config=dict(settings)) as admin:
        (described,) = admin.topics([topic])
    if described.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise ClientError(f'there are no dead letters yet: topic "{topic}" is made by the first run')
    if described.error:
        raise BrokerError(described.error, f'topic "{topic}" of dead letters')
    return [TopicPartition(topic, each.partition) for each in described.partitions]


def _seek(consumer: Consumer, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    committed = consumer.committed(places)
    for place in places:
        consumer.seek(place, committed[place].offset if place in committed else EARLIEST)
    return {place: consumer.position(place) for place in places}


def _batches(
    consumer: Consumer, positions: dict[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int | None
) -> Iterator[list[ConsumerRecord]]:
    """Letters below the ends, at most so many at once and in all."""
    left = limit
    heard = time.monotonic()
    while any(positions[place] < end for place, end in ends.items()) and left != 0:
        most = LETTERS_PER_TRANSACTION if left is None else min(left, LETTERS_PER_TRANSACTION)
        records = consumer.poll(200, most)
        letters = [each for each in records if each.offset < ends[TopicPartition(each.topic, each.partition)]]
        for place in positions:
            positions[place] = consumer.position(place)
        if records:
            heard = time.monotonic()
        elif time.monotonic() - heard > QUIET_SECONDS_MAX:
            raise ClientError(f"no dead letter came for {QUIET_SECONDS_MAX:g} s although there are some")
        if letters:
            left = None if left is None else left - len(letters)
            yield letters


def _send_again(producer: Producer, letter: ConsumerRecord) -> None:
    headers = dict(letter.headers)
    origin = headers.get(f"{DEAD_PREFIX}topic")
    if origin is None:
        raise ClientError(f"the letter at {letter.topic}-{letter.partition} offset {letter.offset} is none of ours")
    own = [
        (name, value) for name, value in letter.headers if not name.startswith(DEAD_PREFIX) and name != REPLAYED_HEADER
    ]
    times = _number(headers.get(REPLAYED_HEADER), otherwise=0) + 1
    producer.send(
        origin.decode(),
        letter.value,
        key=letter.key,
        headers=[*own, (REPLAYED_HEADER, str(times).encode())],
        timestamp=_number(headers.get(f"{DEAD_PREFIX}timestamp"), otherwise=letter.timestamp),
    )


def _number(text: bytes | None, *, otherwise: int) -> int:
    """Anybody may have put a header of this name on a record: it must not keep the other letters from their way."""
    return int(text) if text is not None and re.fullmatch(rb"-?[0-9]{1,18}", text) else otherwise


def _offsets(letters: list[ConsumerRecord]) -> dict[Place, int | OffsetAndMetadata]:
    return {TopicPartition(each.topic, each.partition): each.offset + 1 for each in letters}

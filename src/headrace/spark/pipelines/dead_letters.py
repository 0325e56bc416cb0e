"""Replay dead letters: read them from their topic and send each original record again, once.

Sending them and noting which are left is one transaction, so a kill at any point repeats or loses none. Dead letters
that a replay does not select stay for a later one (letter_states.py).
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.client import EARLIEST, Consumer, ConsumerRecord, OffsetAndMetadata, Producer, TopicPartition
from headrace.client.config_options import EXISTING_TOPICS
from headrace.client.consumer_base import Place
from headrace.client.errors import ClientError
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicId
from headrace.spark.pipelines.failpoints import Failpoint, reach
from headrace.spark.pipelines.letter_states import ReplayedLetters
from headrace.spark.pipelines.output_rows import DEAD_PREFIX

LETTERS_PER_TRANSACTION = 1_000
QUIET_SECONDS_MAX = 30.0
REPLAYED_HEADER = "hr-replayed"
"""Header that counts how often a record was replayed."""

Choice = Callable[[ConsumerRecord], bool]


class ReplayResult(NamedTuple):
    """Counts of a replay; `passed_over` and `before_rewind` stay for a later replay."""

    sent: int = 0
    passed_over: int = 0
    before_rewind: int = 0
    """Dead letters whose records the pipeline reads again since its last rewind."""


class NoDeadLetters(ClientError):
    """No run has created the topic yet."""


class DeadLetter(NamedTuple):
    record: ConsumerRecord
    is_sent: bool


def group_of(pipeline: str) -> str:
    return f"{pipeline}.replay"


@dataclass(slots=True, kw_only=True)
class DeadLetters:
    """The dead letters of one pipeline. A topic may hold those of several pipelines; each sees its own."""

    settings: Mapping[str, Any]
    pipeline: str
    topic: str
    places: list[TopicPartition] = field(init=False)
    _topic_id: TopicId = NO_TOPIC_ID

    def __post_init__(self) -> None:
        from headrace.client import Admin
        from headrace.client.errors import BrokerError

        with Admin(config=dict(self.settings)) as admin:
            (described,) = admin.topics([self.topic])
        if described.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NoDeadLetters(f'there are no dead letters yet: the first run creates topic "{self.topic}"')
        if described.error:
            raise BrokerError(described.error, f'topic "{self.topic}" of dead letters')
        self.places = [TopicPartition(self.topic, each.partition) for each in described.partitions]
        self._topic_id = described.topic_id

    def letters(self) -> Iterator[DeadLetter]:
        """Yield all dead letters in the topic, oldest first in each partition, including those that were replayed."""
        with self._consumer() as consumer:
            left, sent = self._left(consumer), self._loaded()
            for records in _batches(consumer, _begin(consumer, self.places, {})):
                for record in filter(self._is_own, records):
                    is_below = record.offset < left.get(_place(record), 0)
                    yield DeadLetter(record, is_below or sent.has(_place(record), record.offset))

    def replay(
        self, chosen: Choice, *, is_reread: Choice = lambda _letter: False, limit: int | None = None
    ) -> ReplayResult:
        """Replay the selected dead letters that are in the topic now and were not replayed before."""
        group = group_of(self.pipeline)
        with (
            Producer(config={**self.settings, "transactional.id": group}) as producer,
            self._consumer() as consumer,
        ):
            # The first transaction aborts the open transaction of a killed replay; until then its offsets are not
            # stable.
            producer.transaction().commit()
            sending = _Sending(self.settings, group, producer, self._loaded(), self._left(consumer))
            found = ReplayResult()
            for records in _batches(consumer, _begin(consumer, self.places, sending.left)):
                own = [each for each in records if self._is_own(each) and not sending.is_sent(each)]
                wanted = [each for each in own if chosen(each)]
                again = [each for each in wanted if is_reread(each)]
                fresh = [each for each in wanted if not is_reread(each)]
                sent = fresh if limit is None else fresh[: limit - found.sent]
                sending.send(records, own, sent)
                found = ReplayResult(
                    sent=found.sent + len(sent),
                    passed_over=found.passed_over + len(own) - len(wanted),
                    before_rewind=found.before_rewind + len(again),
                )
                if found.sent == limit:
                    break
        return found

    def _consumer(self) -> Consumer:
        reading = {"group.id": group_of(self.pipeline), "isolation.level": "read_committed"}
        beginning = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
        consumer = Consumer(config={**self.settings, **reading, **beginning, **EXISTING_TOPICS})
        consumer.assign(self.places)
        return consumer

    def _left(self, consumer: Consumer) -> dict[TopicPartition, int]:
        """Return the offsets below which no dead letter is left."""
        return {place: at.offset for place, at in consumer.committed(self.places).items()}

    def _loaded(self) -> ReplayedLetters:
        states = ReplayedLetters(self.pipeline, self._topic_id)
        states.load(self.settings)
        return states

    def _is_own(self, record: ConsumerRecord) -> bool:
        """Return whether the dead letter is of this pipeline; one without a pipeline name was written by hand and
        counts too.
        """
        return dict(record.headers).get(f"{DEAD_PREFIX}pipeline") in (None, self.pipeline.encode())


@dataclass(slots=True)
class _Sending:
    """One replay: in each transaction it sends dead letters and notes which are left."""

    settings: Mapping[str, Any]
    group: str
    producer: Producer
    states: ReplayedLetters
    left: dict[TopicPartition, int]
    """By partition, the first offset that may have a dead letter that was not replayed."""
    _first_left: dict[TopicPartition, int] = field(default_factory=dict)
    """The first dead letter that this replay did not send."""

    def is_sent(self, record: ConsumerRecord) -> bool:
        return self.states.has(_place(record), record.offset)

    def send(self, records: list[ConsumerRecord], own: list[ConsumerRecord], sent: list[ConsumerRecord]) -> None:
        """Send the dead letters; `records` are all that were read, and `own` the dead letters among them not replayed
        before.
        """
        offsets: dict[TopicPartition, list[int]] = {}
        for record in sent:
            offsets.setdefault(_place(record), []).append(record.offset)
        for record in own:
            if record.offset not in offsets.get(_place(record), ()):
                self._first_left.setdefault(_place(record), record.offset)
        ends = {_place(record): record.offset + 1 for record in records}
        left = {place: self._first_left.get(place, end) for place, end in ends.items()}
        if not sent and all(self.left.get(place) == offset for place, offset in left.items()):
            return
        self.left |= left
        committed: dict[Place, int | OffsetAndMetadata] = {place: offset for place, offset in left.items()}  # noqa: C416
        states = self.states.changes(offsets, left)
        if states:
            self.states.make_topic(self.settings)
        with self.producer.transaction() as transaction:
            for record in sent:
                _send_again(self.producer, record)
            for key, value in states:
                self.producer.send(self.states.topic, value, key=key)
            transaction.commit_offsets(committed, self.group)
            reach(Failpoint.LETTERS_SENT)


def reason_of(letter: ConsumerRecord) -> str:
    return dict(letter.headers).get(f"{DEAD_PREFIX}reason", b"").decode(errors="replace")  # type: ignore[union-attr]


def origin_of(letter: ConsumerRecord) -> tuple[TopicPartition, int] | None:
    """Return the partition and offset of the original record; None if the headers do not contain it."""
    headers = dict(letter.headers)
    topic = headers.get(f"{DEAD_PREFIX}topic")
    partition, offset = (_number(headers.get(f"{DEAD_PREFIX}{name}"), otherwise=-1) for name in ("partition", "offset"))
    if topic is None or partition < 0 or offset < 0:
        return None
    return TopicPartition(topic.decode(errors="replace"), partition), offset


def _place(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _begin(
    consumer: Consumer, places: list[TopicPartition], begins: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Seek, and return the current ends."""
    for place in places:
        consumer.seek(place, begins.get(place, EARLIEST))
    return dict(consumer.end_offsets(places))


def _batches(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> Iterator[list[ConsumerRecord]]:
    """Yield records below the ends, some at a time."""
    heard = time.monotonic()
    while any(consumer.position(place) < end for place, end in ends.items()):
        records = consumer.poll(timeout_ms=200, max_records=LETTERS_PER_TRANSACTION)
        below = [each for each in records if each.offset < ends[_place(each)]]
        if records:
            heard = time.monotonic()
        elif time.monotonic() - heard > QUIET_SECONDS_MAX:
            raise ClientError(
                f"no dead letter arrived for {QUIET_SECONDS_MAX:g} s although there are some; "
                "check that the brokers are running"
            )
        if below:
            yield below


def _send_again(producer: Producer, letter: ConsumerRecord) -> None:
    headers = dict(letter.headers)
    origin = headers.get(f"{DEAD_PREFIX}topic")
    if origin is None:
        raise ClientError(
            f"the record at {letter.topic}-{letter.partition} offset {letter.offset} is not a dead letter of headrace"
        )
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
    """Parse a header; any producer may have set one of this name: a wrong value must not block the other dead
    letters.
    """
    return int(text) if text is not None and re.fullmatch(rb"-?[0-9]{1,18}", text) else otherwise

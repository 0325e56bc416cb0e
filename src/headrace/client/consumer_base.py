"""Common parts of the consumers of all fronts, around the core: settings, subscriptions, errors and callbacks."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, NamedTuple

from headrace.client.config import ConsumerConfig, refuse_settings
from headrace.client.core.calls import Operation
from headrace.client.core.cluster import Cluster
from headrace.client.core.consumer import ConsumerCore, ConsumerSettings
from headrace.client.core.engine import ClientEngine
from headrace.client.core.fetch_requests import FetchSettings
from headrace.client.core.groups.membership import MembershipSettings, NoticeKind
from headrace.client.core.links import Links
from headrace.client.errors import BrokerError, DeserializationError, InvalidArgument
from headrace.client.serializers import Deserialize, deserializer
from headrace.client.types import EARLIEST, LATEST, ConsumerRecord, GroupIdentity, IsolationLevel, OffsetAndMetadata
from headrace.client.unknown_topics import UnknownTopics
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import TopicPartition
from headrace.ports.entropy import Entropy

if TYPE_CHECKING:
    from headrace.client.core.groups.group import GroupCore
    from headrace.client.core.groups.group_logging import Tell

UNKNOWN_TOPIC_WAIT_MS = 5_000
"""Time for which a topic may stay unknown before a call that needs it raises."""

PARTITION_BYTES = 1024 * 1024
FEW_PARTITIONS_BYTES = 2 * PARTITION_BYTES
"""Bytes fetched of a partition at a time by default: a fetch costs as much as many records."""

MEMBER_ID_BYTES = 16
RESETS: Mapping[str, int | None] = {"earliest": EARLIEST, "latest": LATEST, "none": None}

_PATTERN_SIGNS = frozenset("^$*+?()[]{}|\\")
"""Characters that topic names never contain and patterns mostly do."""

Place = TopicPartition | tuple[str, int]
Commits = Mapping[Place, int | OffsetAndMetadata] | ConsumerRecord | None
ChangeCallback = Callable[[tuple[TopicPartition, ...]], object]

CALLBACK_POLLS = "a rebalance callback cannot poll, because it runs within a poll; return from it first"
CALLBACK_CLOSES = (
    "a rebalance callback cannot close its consumer, because it runs within a poll; return from it first, then close"
)


class RebalanceListener(NamedTuple):
    """The application's callbacks; lost partitions are passed to the revoked callback if there is no other."""

    on_assigned: ChangeCallback | None = None
    on_revoked: ChangeCallback | None = None
    on_lost: ChangeCallback | None = None

    def callback(self, kind: NoticeKind) -> ChangeCallback | None:
        if kind == NoticeKind.ASSIGNED:
            return self.on_assigned
        return (self.on_lost or self.on_revoked) if kind == NoticeKind.LOST else self.on_revoked


class PendingRecords:
    """Records between the core and the application: taken, not deserialized yet, or held by an iteration."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._read_key = deserializer(config.key_deserializer)
        self._read_value = deserializer(config.value_deserializer)
        self._is_plain = self._read_key is None and self._read_value is None
        self._given: list[ConsumerRecord] = []
        self._raw: list[ConsumerRecord] = []
        """Not deserialized yet, in reverse order."""
        self.left: Iterator[ConsumerRecord] = iter(())
        """Records that an iteration has not returned yet: the rest of `_given`."""

    def iterate(self, records: list[ConsumerRecord]) -> Iterator[ConsumerRecord]:
        self._given, self.left = records, iter(records)
        return self.left

    def waiting(self, limit: int) -> list[ConsumerRecord]:
        """Return records that were taken earlier, which come first."""
        left = list(islice(self.left, limit))
        return left if left or not self._raw else self._deserialized(limit)

    def ready(self, taken: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Return records as the application wants them."""
        if self._is_plain:
            return taken
        self._raw = taken[::-1]
        return self._deserialized(len(taken))

    def _deserialized(self, limit: int) -> list[ConsumerRecord]:
        """Deserialize at most `limit` records, up to one that fails; that one raises when it is the next."""
        done: list[ConsumerRecord] = []
        while self._raw and len(done) < limit:
            try:
                done.append(deserialized(self._raw[-1], self._read_key, self._read_value))
            except DeserializationError:
                if done:
                    break
                self._raw.pop()
                raise
            self._raw.pop()
        return done

    def not_given(self) -> list[ConsumerRecord]:
        """Return, in order, all records that the application does not have yet."""
        left = length_hint(self.left)
        return (self._given[-left:] if left else []) + self._raw[::-1]

    def held(self) -> dict[TopicPartition, int]:
        """Return the first offset of each partition that was taken and not returned yet."""
        return {TopicPartition(each.topic, each.partition): each.offset for each in reversed(self.not_given())}

    def positions(self, group: "GroupCore") -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the positions to commit: after the records returned to the application and not committed yet."""
        held = {place: OffsetAndMetadata(offset) for place, offset in self.held().items()}
        return {**group.uncommitted(), **held}

    def give_back(self, core: ConsumerCore, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Give the records of these partitions or all that the application does not have yet back to the core."""
        held = self.held()
        chosen = held.keys() if partitions is None else held.keys() & frozenset(partitions)
        if not chosen:
            return
        self.forget(chosen)
        for place in chosen & frozenset(core.assignment()):
            core.seek(place, held[place])

    def forget(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Drop records of these partitions or all: records taken before a seek are not wanted after it."""
        doomed = None if partitions is None else frozenset(partitions)
        kept = [
            record
            for record in self.not_given()
            if doomed is not None and TopicPartition(record.topic, record.partition) not in doomed
        ]
        self._raw = []
        self._given.clear()  # A running iteration uses this list, and continues with the remaining records.
        self.iterate(kept)


class ConsumerParts:
    """The cores of one consumer, and its subscription."""

    def __init__(self, config: ConsumerConfig, cluster: Cluster, entropy: Entropy, tell: "Tell | None" = None) -> None:
        """`tell` logs group changes and topics that do not exist."""
        self.topics: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None
        self._config = config
        self._cluster = cluster
        self._unknown_topics = UnknownTopics(cluster, tell)
        self.core = ConsumerCore(_consumer_settings(config), cluster)
        self.group: GroupCore | None = None
        if config.group_id is not None:
            from headrace.client.core.groups import group  # with codecs that only groups need

            member_id = entropy.random_bytes(MEMBER_ID_BYTES).hex()
            self.group = group.GroupCore(
                _group_settings(config, config.group_id), cluster, self.core, member_id=member_id, tell=tell
            )

    def subscribe(self, topics: Iterable[str], pattern: str | re.Pattern[str] | None) -> None:
        names = tuple(topics)
        for topic in names:
            _check_name(topic)
        if bool(names) == (pattern is not None):
            raise InvalidArgument("give either topic names or a pattern")
        if isinstance(pattern.pattern if isinstance(pattern, re.Pattern) else pattern, bytes):
            raise InvalidArgument(f"a pattern of topics is a string, not {pattern!r}")
        try:
            self._pattern = re.compile(pattern) if pattern is not None else None
        except re.error as error:
            raise InvalidArgument(f"the pattern {pattern!r} is not a valid regular expression: {error}") from None
        self.topics = names
        target = self.group if self.group is not None else self.core
        if self._pattern is not None:
            matches = self._pattern.fullmatch
            target.subscribe_matching(lambda name: matches(name) is not None)
        else:
            target.subscribe(names)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        if self.group is not None and (self.topics or self._pattern is not None):
            raise InvalidArgument(
                "a consumer that has subscribed gets its partitions from its group: create another consumer"
            )
        self.topics, self._pattern = (), None
        self.core.assign(partitions, needs_committed=self.group is not None)

    def check_reads(self) -> None:
        if not self.topics and self._pattern is None and not self.core.assignment():
            raise InvalidArgument("there is nothing to read: subscribe to topics, or assign() partitions")

    def knows_topics(self) -> bool:
        return all(self._cluster.partition_count(topic) is not None for topic in self.topics)

    def chosen(self, partitions: Iterable[Place] | None) -> list[TopicPartition]:
        """Return these partitions, which must be assigned, or all assigned ones."""
        assigned = self.core.assignment()
        chosen = list(assigned) if partitions is None else as_partitions(partitions)
        for partition in chosen:
            if partition not in assigned:
                raise InvalidArgument(f"{partition} is not assigned to this consumer: assign() it first")
        return chosen

    def look_for_topics(self, now_ms: float) -> None:
        """Log topics that do not exist, and those that have appeared."""
        self._unknown_topics.look(now_ms)

    def raise_error(self, engine: ClientEngine, now_ms: float, *, needs_topics: bool = False) -> None:
        """Raise an error that ends a wait; with `needs_topics` a missing topic raises regardless of the config.

        Unreachable brokers are retried for a while, but not at the first connection.
        """
        is_lasting = now_ms - engine.trouble_since_ms >= self._config.request_timeout_ms
        if engine.trouble is not None and (is_lasting or not self._cluster.brokers):
            trouble, engine.trouble = engine.trouble, None
            raise trouble
        if self.group is not None:
            lasting = self.group.lasting_error(now_ms, self._config.request_timeout_ms)
            if lasting is not None:
                raise lasting
        needs_topics = needs_topics or self._config.unknown_topics == "raise"
        for topic, error in self._unknown_topics.errors(now_ms, UNKNOWN_TOPIC_WAIT_MS):
            is_read = topic in self.topics or any(each.topic == topic for each in self.core.assignment())
            if is_read and (needs_topics if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error not in RETRIABLE):
                raise BrokerError(error, f"topic {topic!r} cannot be read")

    def offsets(self, partitions: Iterable[TopicPartition], time: int) -> Operation[dict[TopicPartition, int]]:
        """Look up offsets by time, EARLIEST or LATEST; for read_committed, LATEST is the last stable offset."""
        from headrace.client.core.admin.partitions import offsets  # with codecs that only administration needs

        found = yield from offsets(
            self._cluster,
            dict.fromkeys(partitions, time),
            timeout_ms=self._config.request_timeout_ms,
            isolation=isolation_of(self._config),
        )
        for partition, at in found.items():
            if at.error:
                raise BrokerError(
                    at.error, f"the offsets of {partition} are not known; check that it exists and has a leader"
                )
        return {partition: at.offset for partition, at in found.items()}

    def metrics(self, links: Links) -> dict[str, float]:
        lags = self.core.lags().values()
        return {
            **links.counters(),
            **self.core.counters(),
            "assigned-partitions": len(lags),
            "records-lag-max": max((lag for lag in lags if lag is not None), default=0),
        }


class ConsumerBase:
    """Methods of the consumers of all fronts that do not wait for a broker."""

    config: ConsumerConfig
    _parts: ConsumerParts

    def _tell_received(self, taken: list[ConsumerRecord], duration_ms: float) -> None:
        telemetry = self.config.telemetry
        if telemetry is not None and taken:
            telemetry.received(self.config.client_id, self.config.group_id, taken, duration_ms)

    def __repr__(self) -> str:
        parts, group = self._parts, self.config.group_id
        reads = ", ".join(parts.topics) or f"{len(parts.core.assignment())} partitions"
        return f"<{type(self).__name__} of {reads}{f' in group {group}' if group else ''} at {self.config.servers()}>"

    def assignment(self) -> tuple[TopicPartition, ...]:
        """Return the assigned partitions; those of topics only once they are known."""
        return self._parts.core.assignment()

    def paused(self) -> tuple[TopicPartition, ...]:
        return self._parts.core.paused()

    def lag(self) -> dict[TopicPartition, int | None]:
        """Return the number of records after the position, as of the last response; None before the first."""
        return self._parts.core.lags()

    def group_identity(self) -> GroupIdentity:
        """Return the group identity of this consumer, which `Transaction.commit_offsets` needs."""
        group = self._require_group()
        return GroupIdentity(group.settings.group_id, *group.identity())

    def _require_group(self) -> "GroupCore":
        group = self._parts.group
        if group is None:
            raise InvalidArgument("this consumer has no group: set group_id to commit offsets")
        return group


def _check_name(topic: object) -> None:
    refuse_settings(topic)
    if not isinstance(topic, str) or not topic:
        raise InvalidArgument(f"topics are given one by one as strings, such as 'orders', 'returns', not as {topic!r}")
    if not _PATTERN_SIGNS.isdisjoint(topic):
        raise InvalidArgument(f"{topic!r} is not a valid topic name; if it is a pattern, pass it as pattern={topic!r}")


def isolation_of(config: ConsumerConfig) -> IsolationLevel:
    is_committed = config.isolation_level == "read_committed"
    return IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED


def fetch_settings(config: ConsumerConfig) -> FetchSettings:
    return FetchSettings(
        wait_ms_max=config.fetch_max_wait_ms,
        bytes_min=config.fetch_min_bytes,
        bytes_max=config.fetch_max_bytes,
        partition_bytes_max=config.max_partition_fetch_bytes or PARTITION_BYTES,
        isolation=isolation_of(config),
        rack=config.client_rack or "",
    )


def _consumer_settings(config: ConsumerConfig) -> ConsumerSettings:
    return ConsumerSettings(
        reset_to=RESETS[config.auto_offset_reset],
        fetches=fetch_settings(config),
        few_partitions_bytes=config.max_partition_fetch_bytes or FEW_PARTITIONS_BYTES,
        check_crcs=config.check_crcs,
        create_topics=config.allow_auto_create_topics,
        request_timeout_ms=config.request_timeout_ms,
    )


def _group_settings(config: ConsumerConfig, group_id: str) -> MembershipSettings:
    return MembershipSettings(
        group_id=group_id,
        instance_id=config.group_instance_id,
        protocol=config.group_protocol,
        assignors=config.assignors(),
        server_assignor=config.group_remote_assignor,
        session_timeout_ms=config.session_timeout_ms,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        poll_interval_ms_max=config.max_poll_interval_ms,
        auto_commit_interval_ms=config.auto_commit_interval_ms if config.enable_auto_commit else None,
        rack=config.client_rack,
    )


def as_place(place: object) -> TopicPartition:
    match place:
        case (str(topic), int(index)):
            return TopicPartition(topic, index)
    raise InvalidArgument(f"a partition is a topic and a number, as in [('orders', 0)], not {place!r}")


def as_partitions(partitions: Iterable[Place]) -> list[TopicPartition]:
    return [as_place(partition) for partition in partitions]


def check_offset(offset: object) -> None:
    if not isinstance(offset, int) or offset < EARLIEST:
        raise InvalidArgument(f"an offset is a number from zero up, EARLIEST or LATEST, not {offset!r}")


def check_time(time_ms: object) -> None:
    if not isinstance(time_ms, int) or time_ms < 0:
        how = "such as int(when.timestamp() * 1000)"
        raise InvalidArgument(f"a time is a whole number of milliseconds since 1970, {how}, not {time_ms!r}")


def as_offsets(offsets: Commits) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets by partition, from such a mapping or from the last record that was processed."""
    if isinstance(offsets, ConsumerRecord):
        return {TopicPartition(offsets.topic, offsets.partition): OffsetAndMetadata(offsets.offset + 1)}
    wanted: dict[TopicPartition, OffsetAndMetadata] = {}
    for place, offset in (offsets or {}).items():
        committed = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if not isinstance(committed.offset, int) or committed.offset < 0:
            raise InvalidArgument(f"an offset to commit is a number from zero up, not {committed.offset!r}")
        wanted[as_place(place)] = committed
    return wanted


def deserialized(
    record: ConsumerRecord, read_key: Deserialize | None, read_value: Deserialize | None
) -> ConsumerRecord:
    """Return the record with its key and value deserialized."""
    key, value = record.key, record.value
    try:
        if read_key is not None and key is not None:
            key = read_key(key)
        if read_value is not None and value is not None:
            value = read_value(value)
    except Exception as error:
        where = f"{record.topic}-{record.partition} at offset {record.offset}"
        raise DeserializationError(f"the record at {where} cannot be deserialized: {error!r}", record) from error
    return record._replace(key=key, value=value)

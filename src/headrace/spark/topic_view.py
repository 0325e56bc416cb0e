"""Topic metadata from the brokers: partitions, ids and offsets. Waits while the brokers cannot be reached."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple
from uuid import UUID

from headrace.client.blocking.admin import Admin
from headrace.client.config import AdminConfig, ClientConfig, ConsumerConfig
from headrace.client.errors import BrokerUnreachable, ClientError
from headrace.client.types import EARLIEST, LATEST, IsolationLevel, OffsetAt, TopicDescription
from headrace.core.groups.topic_patterns import NamePattern
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import TopicPartition
from headrace.spark.broker_wait import PASSING, BrokerWait
from headrace.spark.log_once import log_once
from headrace.spark.option_names import OptionError
from headrace.spark.source_options import Selection, SourceOptions

NO_OFFSET = -1
_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TopicsSeen(NamedTuple):
    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, str]
    missing: tuple[str, ...]
    """Topics, or partitions, that were named and do not exist."""


class TopicView:
    """Keeps one connection; created and used in one process."""

    def __init__(self, options: SourceOptions) -> None:
        config = ConsumerConfig.from_names(options.settings)
        shared = {each.name: getattr(config, each.name) for each in fields(ClientConfig)}
        self._admin = Admin(config=AdminConfig(**shared))
        self._isolation = IsolationLevel[options.isolation.upper()]
        self._patience = BrokerWait(
            servers=config.servers(), option="kafkaConsumer.pollTimeoutMs", limit_ms=options.poll_timeout_ms
        )
        self._selection = options.selection
        self.servers = config.servers()

    def cluster_id(self) -> str | None:
        """Return None if the brokers have no cluster id."""
        return self._patience.ask(self._admin.cluster).cluster_id

    def topics(self) -> TopicsSeen:
        selection = self._selection
        names = selection.topics or sorted({each.topic for each in selection.partitions})
        described = self._patience.ask(lambda: self._described(names))
        missing = [each.name for each in described if each.error == _UNKNOWN]
        refused = next((each for each in described if each.error and each.name not in missing), None)
        if refused is not None:
            raise ClientError(f'topic "{refused.name}" cannot be read: {refused.error.name}')
        found = {each.name: each for each in described if not each.error}
        every = {TopicPartition(name, index) for name, each in found.items() for index in range(len(each.partitions))}
        if selection.partitions:
            missing += [str(each) for each in selection.partitions if each not in every and each.topic not in missing]
            every &= set(selection.partitions)
        ids = {name: str(UUID(bytes=each.topic_id)) for name, each in found.items() if any(each.topic_id)}
        return TopicsSeen(tuple(sorted(every)), ids, tuple(missing))

    def _described(self, names: Sequence[str]) -> tuple[TopicDescription, ...]:
        """Return the topics of these names or those that match the pattern: errors of others do not matter."""
        pattern = self._selection.pattern
        described = self._admin.topics(None if pattern is not None else names)
        if pattern is not None:
            matching = set(NamePattern(pattern).matching([each.name for each in described]))
            described = tuple(each for each in described if each.name in matching and not each.internal)
        unsettled = next((each for each in described if each.error in PASSING), None)
        if unsettled is not None:
            raise BrokerUnreachable(f'topic "{unsettled.name}" cannot be read now: {unsettled.error.name}; retrying')
        return described

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self.at(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset after the last record that can be read at this isolation level."""
        return self.at(dict.fromkeys(partitions, LATEST))

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset after the last record, including records of open transactions."""
        times = dict.fromkeys(partitions, LATEST)
        return self._offsets(times, IsolationLevel.READ_UNCOMMITTED) if times else {}

    def at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offsets at these times in milliseconds, EARLIEST or LATEST; -1 if no record is as new."""
        return self._offsets(times, self._isolation) if times else {}

    def bytes_per_offset(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, float]:
        """Return the average bytes of an offset of each partition, by the sizes of their logs."""
        wanted = set(partitions)
        sizes: dict[TopicPartition, int] = {}
        for folder in self._patience.ask(lambda: self._admin.log_dirs()):
            for replica in folder.replicas:
                place = TopicPartition(replica.topic, replica.partition)
                if place in wanted and not replica.is_future:
                    sizes[place] = max(sizes.get(place, 0), replica.size_bytes)
        first, last = self.earliest(sizes), self.latest(sizes)
        return {each: size / max(1, last[each] - first[each]) for each, size in sizes.items()}

    def publish(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Publish the position of the query as a group; a failure is only logged."""
        try:
            outcomes = self._admin.commit_group_offsets(group, offsets)
            failed = next((each for each in outcomes.values() if each.error), None)
            if failed is not None:
                log_once(f'the progress is not published to group "{group}": {failed.error.name}')
        except ClientError as error:
            log_once(f'the progress is not published to group "{group}": {error}')

    def close(self) -> None:
        self._admin.close()

    def _offsets(self, times: Mapping[TopicPartition, int], isolation: IsolationLevel) -> dict[TopicPartition, int]:
        found = self._patience.ask(lambda: self._answered(times, isolation))
        return {each: at.offset for each, at in found.items()}

    def _answered(
        self, times: Mapping[TopicPartition, int], isolation: IsolationLevel
    ) -> dict[TopicPartition, OffsetAt]:
        found = self._admin.offsets(times, isolation=isolation)
        for partition, at in found.items():
            if at.error:
                what = f"the offsets of {partition} are not known: {at.error.name}"
                raise BrokerUnreachable(what) if at.error in RETRIABLE else ClientError(what)
        return found


def require_topics(seen: TopicsSeen, selection: Selection) -> None:
    """Raise an error if a named topic does not exist; the result is never silently empty."""
    option = "subscribe" if selection.topics else "assign"
    if selection.pattern is not None and not seen.partitions:
        log_once(f'option "subscribePattern" ({selection.pattern}) matches no topic now')
    if seen.missing:
        names = ", ".join(f'"{each}"' for each in seen.missing)
        raise OptionError(f'option "{option}" names {names}, which does not exist; create it or check the spelling')

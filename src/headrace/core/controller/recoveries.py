"""Recover partitions of which no replica is known to have every committed record. No I/O.

The machines of all in-sync and eligible replicas have lost unsynced records. Each of those replicas reports the end of
its log when its broker runs again. When all have, the one with the highest leader epoch, and of those with the highest
end offset, becomes the leader: no other has a record that it lacks, unless their histories differ. The reports are
kept in memory; brokers repeat them until the partition has a leader.
"""

from collections.abc import Iterator
from typing import NamedTuple

from headrace.core.controller.commands import ControllerDecision
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_changes import change, change_record
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import PartitionChangeRecord
from headrace.core.controller.settings import ControllerSettings
from headrace.core.controller.topic_rules import TopicRules
from headrace.model.ids import NO_NODE, NodeId, TopicId

REPORTED_PER_REQUEST_MAX = 10_000
"""Partitions of one report; a broker reports further ones when the first have leaders."""


class LogEnd(NamedTuple):
    """The end of the log of one replica."""

    topic_id: TopicId
    partition: int
    leader_epoch: int
    """The leader epoch of its last batch; -1 if it has none."""
    end_offset: int


class _Report(NamedTuple):
    leader_epoch: int
    end_offset: int
    broker_epoch: int


def needs_recovery(state: PartitionState) -> bool:
    """Return whether a partition waits for the log ends of the replicas that had every record."""
    return state.leader == NO_NODE and not state.isr and not state.elr and bool(state.last_known_elr)


class LogEndReports:
    """The reports that the active controller has received; those of partitions with a leader are dropped."""

    def __init__(self) -> None:
        self._reports: dict[tuple[TopicId, int], dict[NodeId, _Report]] = {}

    def clear(self) -> None:
        self._reports.clear()

    def add(self, image: MetadataImage, node_id: NodeId, broker_epoch: int, ends: list[LogEnd]) -> None:
        """Take the report of a broker; what it says about other partitions than those that wait is ignored."""
        for end in ends:
            state = _state(image, end.topic_id, end.partition)
            if state is not None and needs_recovery(state) and node_id in state.last_known_elr:
                reports = self._reports.setdefault((end.topic_id, end.partition), {})
                reports[node_id] = _Report(end.leader_epoch, end.end_offset, broker_epoch)

    def recover(self, image: MetadataImage, settings: ControllerSettings) -> ControllerDecision[tuple[str, ...]]:
        """Elect leaders for the partitions whose reports are complete; the response describes the elections."""
        records: list[PartitionChangeRecord] = []
        notes: list[str] = []
        rules = TopicRules(image, settings)
        for (topic_id, partition), state, reports in self._waiting(image):
            if not all(_is_current(image, node, reports.get(node)) for node in state.last_known_elr):
                continue
            chosen = max(state.last_known_elr, key=lambda node: reports[node][:2])
            topic = image.topics_by_id[topic_id]
            record = change_record(topic_id, partition, state, change(state, rules.of(topic), chosen=chosen))
            assert record is not None, "a partition without a leader gets one"
            records.append(record)
            report = reports[chosen]
            notes.append(
                f"{topic.name}-{partition}: the machines of all replicas with every record were restarted; broker "
                f"{chosen} leads, because its log ends at offset {report.end_offset} of leader epoch "
                f"{report.leader_epoch}, behind which no other one ends"
            )
        return ControllerDecision(tuple(records), tuple(notes))

    def _waiting(
        self, image: MetadataImage
    ) -> Iterator[tuple[tuple[TopicId, int], PartitionState, dict[NodeId, _Report]]]:
        for key, reports in tuple(self._reports.items()):
            state = _state(image, *key)
            if state is None or not needs_recovery(state):
                del self._reports[key]
            else:
                yield key, state, reports


def _state(image: MetadataImage, topic_id: TopicId, partition: int) -> PartitionState | None:
    topic = image.topics_by_id.get(topic_id)
    return topic.partitions[partition] if topic is not None and 0 <= partition < len(topic.partitions) else None


def _is_current(image: MetadataImage, node: NodeId, report: _Report | None) -> bool:
    """Return whether the replica's broker runs, and has reported since it was registered."""
    broker = image.brokers.get(node)
    return (
        broker is not None
        and broker.takes_partitions
        and report is not None
        and report.broker_epoch == broker.broker_epoch
    )

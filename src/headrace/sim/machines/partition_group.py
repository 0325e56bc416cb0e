"""Replicas of partitions on the members of a run of machines, and what they promise together with the controller.

Logs are lists of record numbers. A leader waits for the maximal in-sync set, asks for changes of it as a broker does,
and commits nothing below the minimum; followers copy its log whole. A crash is the death of the process or, half of
the time, of the machine, which loses unsynced records and has another boot id afterwards.
"""

from collections.abc import Sequence
from functools import partial

from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import (
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
)
from headrace.core.controller.settings import ControllerSettings
from headrace.model.ids import NO_NODE, NodeId, TopicId
from headrace.sim.checkers.violation import require
from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.member_group import MemberGroup
from headrace.sim.machines.partition_node import Key, PartitionNode, matching
from headrace.sim.machines.raft_cluster import RaftCluster

REPLICATION_FACTOR = 3
TOPICS_MAX = 10

COMMITTED_IS_KEPT = "a committed record is on every in-sync and eligible replica"
COMMITTED_STAYS = "what was committed does not change"
ONE_LEADER = "a leader epoch of a partition has one leader"
CURRENT_EPOCHS = "a committed in-sync set names the current partition epoch and broker epochs"


class PartitionGroup:
    def __init__(self, cluster: RaftCluster, group: MemberGroup, entropy: SeededEntropy) -> None:
        self._cluster = cluster
        self.committed: dict[Key, list[int]] = {}
        self._leaders: dict[tuple[TopicId, int, int], NodeId] = {}
        self._checked = 0
        """The end of the metadata log up to which some member has applied it."""
        self._before: dict[Key, PartitionState] = {}
        group.topics_max, group.replication_factor = TOPICS_MAX, REPLICATION_FACTOR
        self.nodes: list[PartitionNode] = []
        for member in group.members:
            member.settings = ControllerSettings(replication_factor_max=REPLICATION_FACTOR)
            node = PartitionNode(
                member,
                links=cluster.links,
                entropy=entropy.branch(f"node {member.node_id}"),
                trace=cluster.trace,
                node_of=lambda number: self.nodes[number],
                member_of=lambda number: group.members[number],
                committed=self._commit,
            )
            self.nodes.append(node)
            member.on_applied = partial(self._applied, node)

    # Invariants

    def _commit(self, node: PartitionNode, key: Key, records: list[int]) -> None:
        """Note that a leader has committed these records, from the first one on."""
        known = self.committed.setdefault(key, [])
        common = matching(known, records)
        require(
            common == min(len(known), len(records)),
            COMMITTED_STAYS,
            f"node {node.node_id} commits {records[common:][:1]} at {common} of {key}, which was {known[common:][:1]}",
        )
        if len(records) > len(known):
            known += records[len(known) :]
            self._cluster.trace.count_fault("record committed")

    def _applied(self, node: PartitionNode, records: Sequence[Record]) -> None:
        """Check a change when the first member applies it: once before, with its records, and once after."""
        image = node.member.image
        if records and image.version >= self._checked:
            self._before = {}
            registered = {record.node_id for record in records if isinstance(record, RegisterBrokerRecord)}
            for record in records:
                if isinstance(record, PartitionChangeRecord):
                    self._note(image, record, registered)
                elif isinstance(record, PartitionRecord):
                    self._note_leader((record.topic_id, record.partition, record.leader_epoch), record.leader)
        elif not records and image.version > self._checked:
            self._checked = image.version
            for key, before in self._before.items():
                self._check_change(image, key, before)
            self._before = {}
            self._check_members(image)

    def _note(self, image: MetadataImage, record: PartitionChangeRecord, registered: set[NodeId]) -> None:
        state = image.topics_by_id[record.topic_id].partitions[record.partition]
        self._before[record.topic_id, record.partition] = state
        if record.leader is not None:
            self._note_leader((record.topic_id, record.partition, state.leader_epoch + 1), record.leader)

    def _note_leader(self, epoch: tuple[TopicId, int, int], leader: NodeId) -> None:
        if leader != NO_NODE:
            known = self._leaders.setdefault(epoch, leader)
            require(known == leader, ONE_LEADER, f"nodes {known} and {leader} in {epoch}")

    def _check_change(self, image: MetadataImage, key: Key, before: PartitionState) -> None:
        state = image.topics_by_id[key[0]].partitions[key[1]]
        for joined in set(state.isr) - set(before.isr) - {state.leader}:
            epoch = self.nodes[before.leader].asked_epoch(key, before, joined)
            current = image.brokers[joined].broker_epoch
            require(epoch == current, CURRENT_EPOCHS, f"{joined} joins {key} with {epoch}, its epoch is {current}")
        if not before.isr and not before.elr and state.leader != NO_NODE:
            # No replica was known to have every record: what the best one lacks is lost.
            self._cluster.trace.count_fault("leader recovered")
            known = self.committed.setdefault(key, [])
            del known[matching(known, self.nodes[state.leader].logs.get(key, [])) :]

    def _check_members(self, image: MetadataImage) -> None:
        for key, committed in self.committed.items():
            topic = image.topics_by_id.get(key[0])
            state = topic.partitions[key[1]] if topic is not None else None
            for member in (*state.isr, *state.elr) if state is not None else ():
                node = self.nodes[member]
                if not node.has_lost_since(image.brokers[member].incarnation):
                    found = matching(committed, node.logs.get(key, []))
                    require(
                        found == len(committed),
                        COMMITTED_IS_KEPT,
                        f"node {member} has {found} of {len(committed)} records of {key[1]}: {state}",
                    )

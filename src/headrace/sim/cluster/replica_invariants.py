"""Invariants of replicated partitions, checked after every step on the logs and roles of all brokers.

Committed is what was ever below the high watermark of a leader. The in-sync and eligible replicas are those of the
newest metadata that any broker has applied.
"""

from collections.abc import Iterator, Sequence

from headrace.broker.node import Node
from headrace.broker.partitions.replica import Replica
from headrace.core.controller.image import MetadataImage
from headrace.core.replication.follower import Follower
from headrace.core.replication.leader import Leader
from headrace.model.ids import NodeId, TopicPartition
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.cluster.replica_logs import ReplicaLog, StoredBatch
from headrace.sim.node import VirtualNode

COMMITTED_IS_KEPT = "every committed record is on each in-sync and eligible replica, byte for byte"
COMMITTED_STAYS = "what was committed does not change"
EQUAL_PREFIXES = "equal epochs at one offset mean equal logs up to there"
ONE_ACCEPTOR = "in a leader epoch of a partition one broker accepts appends"
BELOW_LATER_EPOCHS = "what a leader epoch commits lies below the start of every later one"
STABLE_STAYS = "the last stable offset does not go back when the leader changes"
LEADS_AS_DECIDED = "a broker leads a partition only while its metadata names it as the leader of that epoch"
SENT_AS_SEALED = "no connection sends bytes that were truncated after its response was made"

TURNS_TO_RESIGN_MAX = 10
"""Turns in which a broker may still follow a change of metadata that it has applied."""


class _Partition:
    """Everything that the brokers of a run have shown of one partition."""

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.committed: list[StoredBatch] = []
        self.committed_end = 0
        self._known: dict[tuple[int, int], tuple[StoredBatch, tuple[int, int] | None]] = {}
        """Every batch by its offset and epoch, with the one before it."""
        self._acceptors: dict[int, NodeId] = {}
        self._commits: dict[int, int] = {}
        """The highest high watermark of each leader epoch."""
        self._starts: dict[int, int] = {}
        self._stable: dict[int, int] = {}
        """The highest last stable offset of each leader epoch."""

    def written(self, node_id: NodeId, replica: Replica, before: StoredBatch | None, new: list[StoredBatch]) -> None:
        """Note batches that follow `before` in the log of a broker."""
        previous = None if before is None else (before.base_offset, before.leader_epoch)
        for batch in new:
            key = (batch.base_offset, batch.leader_epoch)
            known = self._known.get(key)
            if known is None:
                self._known[key] = batch, previous
                self._accepted(node_id, replica, batch)
            else:
                is_equal = known[0] == batch and (previous is None or known[1] in (None, previous))
                require(is_equal, EQUAL_PREFIXES, f"{self.place} {batch} behind {previous} was {known}")
            previous = key

    def _accepted(self, node_id: NodeId, replica: Replica, batch: StoredBatch) -> None:
        """Note who has accepted a batch: the broker that has it first, or its leader, which was killed since."""
        epoch, role = batch.leader_epoch, replica.role
        if isinstance(role, Follower):
            if role.leader_epoch != epoch:
                return
            node_id = role.leader
        known = self._acceptors.setdefault(epoch, node_id)
        require(known == node_id, ONE_ACCEPTOR, f"brokers {known} and {node_id} in epoch {epoch} of {self.place}")

    def led(self, node_id: NodeId, replica: Replica, role: Leader, log: ReplicaLog) -> None:
        """Check what a leader shows of itself."""
        epoch = role.leader_epoch
        if epoch not in self._starts:
            self._starts[epoch] = role.epoch_start_offset
            latest = max((end for other, end in self._commits.items() if other < epoch), default=0)
            require(
                latest <= role.epoch_start_offset,
                BELOW_LATER_EPOCHS,
                f"epoch {epoch} of {self.place} begins at {role.epoch_start_offset}, {latest} was committed before",
            )
        if role.high_watermark > self._commits.get(epoch, 0):
            self._committed(node_id, role, log)
        if role.knows_latest_offset and replica.serves and role.last_stable_offset > self._stable.get(epoch, -1):
            self._stable[epoch] = role.last_stable_offset
        if role.knows_latest_offset and replica.serves:
            earlier = max((offset for other, offset in self._stable.items() if other <= epoch), default=0)
            require(
                role.last_stable_offset >= earlier,
                STABLE_STAYS,
                f"it is {role.last_stable_offset} in epoch {epoch} of {self.place}, and was {earlier}",
            )

    def _committed(self, node_id: NodeId, role: Leader, log: ReplicaLog) -> None:
        epoch, end = role.leader_epoch, role.high_watermark
        self._commits[epoch] = end
        for other, start in self._starts.items():
            require(
                other <= epoch or end <= start,
                BELOW_LATER_EPOCHS,
                f"epoch {epoch} of {self.place} commits {end}, epoch {other} began at {start}",
            )
        self.check_equal(node_id, log, min(end, self.committed_end), COMMITTED_STAYS)
        if end > self.committed_end:
            self.committed += log.between(self.committed_end, end)
            self.committed_end = log.equal_below = end

    def check_equal(self, node_id: NodeId, log: ReplicaLog, end: int, promise: str) -> None:
        """Check that the log has what is committed below `end`, from its own start on."""
        begin = max(log.equal_below, log.log.start_offset)
        if begin >= end:
            return
        wanted = [batch for batch in self._committed_from(begin) if batch.next_offset <= end]
        found = log.between(begin, end)
        if found != wanted:
            lacking = next((one for one in wanted if one not in found), None)
            raise Violation(
                promise, f"broker {node_id} has {len(found)} of {len(wanted)} batches of {self.place}, not {lacking}"
            )
        log.equal_below = end

    def _committed_from(self, begin: int) -> Iterator[StoredBatch]:
        for place in reversed(range(len(self.committed))):
            if self.committed[place].base_offset < begin:
                return iter(self.committed[place + 1 :])
        return iter(self.committed)


class ReplicaInvariants:
    """The observed logs and leaders of the partitions that applications use."""

    def __init__(self, nodes: Sequence[VirtualNode], places: Sequence[TopicPartition]) -> None:
        self._nodes = {NodeId(virtual.config.node_id): virtual for virtual in nodes}
        self._partitions = {place: _Partition(place) for place in places}
        self._logs: dict[tuple[NodeId, TopicPartition], ReplicaLog] = {}
        self._late: dict[tuple[NodeId, TopicPartition], int] = {}
        """Turns in which a broker leads against its metadata."""
        self._version = -1
        self._epochs: dict[NodeId, int] = {}
        self._members: dict[TopicPartition, tuple[NodeId, ...]] = {}
        """The in-sync and the eligible replicas."""
        self._power_cuts: dict[tuple[NodeId, int], int] = {}
        """The number of power cuts of a machine when its broker had each broker epoch."""

    def check(self) -> None:
        for node_id, virtual in self._nodes.items():
            node = virtual.node
            if node is None:
                continue
            self._power_cuts[node_id, node.broker.lifecycle.broker_epoch] = virtual.machine.power_cuts
            self._take_metadata(node.broker.image)
            self._check_senders(virtual, node)
            for place, partition in self._partitions.items():
                replica = _replica(node, place)
                log = None if replica is None else self._follow(node_id, virtual, partition, replica)
                if log is not None and replica is not None and isinstance(replica.role, Leader):
                    partition.led(node_id, replica, replica.role, log)
                    self._check_role(node_id, virtual, node, place, replica.role)
        for place, partition in self._partitions.items():
            for member in self._members.get(place, ()):
                self._check_member(member, partition)

    def _take_metadata(self, image: MetadataImage) -> None:
        """Keep the newest committed sets: the only broker that has applied them may be killed."""
        if image.version <= self._version:
            return
        self._version = image.version
        self._epochs = {node_id: broker.broker_epoch for node_id, broker in image.brokers.items()}
        for place in self._partitions:
            state = image.partition(place.topic, place.partition)
            if state is not None:
                self._members[place] = (*state.isr, *state.elr)

    def _follow(
        self, node_id: NodeId, virtual: VirtualNode, partition: _Partition, replica: Replica
    ) -> ReplicaLog | None:
        """Read what was appended to a replica's log; None while the log is being cut or cannot be used."""
        log = replica.log
        if log.is_truncating or replica.being_cut or log.failed or replica.offline:
            return None
        known = self._logs.get((node_id, partition.place))
        if known is None or known.log is not log or not known.is_current:
            known = self._logs[node_id, partition.place] = ReplicaLog(virtual.machine.disk, log)
        if log.end_offset != known.end_offset:
            before = known.batches[-1] if known.batches else None
            partition.written(node_id, replica, before, known.follow())
        return known

    def _check_member(self, member: NodeId, partition: _Partition) -> None:
        """Check an in-sync or eligible replica, if its process runs and can use its log.

        A machine that lost power since the registration counts from its next registration on.
        """
        log = self._logs.get((member, partition.place))
        if log is None or log.equal_below >= partition.committed_end:
            return
        virtual = self._nodes[member]
        replica = None if virtual.node is None else _replica(virtual.node, partition.place)
        registered = self._power_cuts.get((member, self._epochs[member]))
        if replica is None or replica.log is not log.log or registered != virtual.machine.power_cuts:
            return
        if replica.has_lost_end or replica.is_damaged or self._follow(member, virtual, partition, replica) is not log:
            return
        partition.check_equal(member, log, partition.committed_end, COMMITTED_IS_KEPT)

    def _check_role(
        self, node_id: NodeId, virtual: VirtualNode, node: Node, place: TopicPartition, role: Leader
    ) -> None:
        state = node.broker.image.partition(place.topic, place.partition)
        key = (node_id, place)
        if state is None or (state.leader, state.leader_epoch) == (node_id, role.leader_epoch):
            self._late.pop(key, None)
        elif virtual.serves:  # a paused broker has no turns
            self._late[key] = self._late.get(key, 0) + 1
            require(
                self._late[key] <= TURNS_TO_RESIGN_MAX,
                LEADS_AS_DECIDED,
                f"broker {node_id} leads {place} in epoch {role.leader_epoch}, its metadata has {state.leader} in "
                f"epoch {state.leader_epoch}",
            )

    def _check_senders(self, virtual: VirtualNode, node: Node) -> None:
        disk = virtual.machine.disk
        for connection in node.loop.connections.all():
            for part in connection.unsent_ranges():
                require(
                    part.position + part.length <= disk.size(part.file),
                    SENT_AS_SEALED,
                    f"{virtual.machine.name} still sends {part.length} bytes at {part.position}",
                )


def _replica(node: Node, place: TopicPartition) -> Replica | None:
    local = node.broker.partitions.by_name.get(place.topic.encode())
    return None if local is None else local.replicas.get(place.partition)

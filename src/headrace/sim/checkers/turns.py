"""Invariants after every turn of a node: cheap checks of its state, not of its responses."""

from headrace.broker.node import Node
from headrace.broker.partitions.replica import Replica
from headrace.core.replication.leader import Leader
from headrace.core.replication.role import ReplicaRole
from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.checkers.topics import check_image
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.context import RunContext

HELPER_WORK_MAX = 400
"""Operations that may wait for helper threads at once."""
RESOURCES_CHECK_TURNS = 16
"""Interval of the more expensive checks."""

ALL_OPEN = "a start opens every partition without manual work"
NEVER_BACK = "high watermark and log start never go back within an epoch"
IN_ORDER = "log start <= high watermark <= log end"
NOT_OUR_FAULT = "no request fails inside the broker"
BOUNDED = "parked requests, buffers and helpers' work are bounded"

_Marks = tuple[int, int, int]


class TurnInvariants:
    """One object for one start of a node."""

    def __init__(self, context: RunContext, node: Node) -> None:
        self._context = context
        self._node = node
        self._marks: dict[Replica, _Marks] = {}
        self._roles: dict[Replica, ReplicaRole] = {}
        """The roles in which the marks were taken."""
        self._histories: dict[Replica, PartitionHistory | None] = {}
        self._turns = 0

    def ready(self) -> None:
        """Check that the node, which now accepts clients, has all promised metadata and partitions."""
        check_image(self._node.broker.image, [plan.truth for plan in self._context.plans])
        for topic in self._context.histories.topics.values():
            local = self._node.broker.partitions.by_id.get(topic.topic_id)
            if local is None:
                continue  # its deletion was in progress
            for history in topic.partitions:
                is_open = history.index in local.replicas
                require(is_open or self._context.disk_trouble, ALL_OPEN, f"{history} stays closed")

    def check(self) -> None:
        marks = self._marks
        for partition in self._node.broker.partitions:
            log, high_watermark = partition.log, partition.role.high_watermark
            now = (log.start_offset, high_watermark, log.end_offset)
            before = marks.get(partition)
            if now != before:
                marks[partition] = now
                self._compare(partition, before, now)
            history = self._history_of(partition)
            if history is not None and log.recovery_point > max(history.durable_end, log.start_offset):
                history.durable_end = log.recovery_point  # at the start of the log it proves nothing about a sync
        self._turns += 1
        if self._turns % RESOURCES_CHECK_TURNS == 0:
            self._check_resources()

    def _compare(self, partition: Replica, before: _Marks | None, now: _Marks) -> None:
        name = partition.log.topic_partition
        if not partition.offline and not now[0] <= now[1] <= now[2]:
            raise Violation(IN_ORDER, f"{name}: {now}")
        role, self._roles[partition] = self._roles.get(partition), partition.role
        still_leads = isinstance(role, Leader) and role is partition.role
        compared = 3 if still_leads else 2  # a follower gives up the end that its leader does not have
        if before is not None and any(new < old for new, old in zip(now[:compared], before, strict=False)):
            raise Violation(NEVER_BACK, f"{name}: (log start, high watermark, log end) went from {before} to {now}")

    def _history_of(self, partition: Replica) -> PartitionHistory | None:
        history = self._histories.get(partition)
        if history is None:
            topic = self._context.histories.topics.get(partition.topic_id)
            if topic is None or partition.index >= len(topic.partitions):
                return None  # just created: the client that requested it does not know it yet
            history = self._histories[partition] = topic.partitions[partition.index]
            history.opened(
                partition.log.end_offset,
                partition.role.leader_epoch,
                power_cuts=self._context.virtual.machine.power_cuts,
            )
        return history

    def _check_resources(self) -> None:
        node, virtual = self._node, self._context.virtual
        failures = node.metrics.handler_failures
        require(not failures or self._context.disk_trouble, NOT_OUR_FAULT, f"{failures} failed")
        waiting = virtual.machine.spawner.in_flight()
        require(waiting <= HELPER_WORK_MAX, BOUNDED, f"{waiting} operations wait for helpers")
        parked = node.metrics.parked_fetches
        require(0 <= parked <= len(node.loop.connections), BOUNDED, f"{parked} fetches are parked")

"""The replicas of partitions on one member of a run of machines: leaders, followers, and what a crash leaves."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from headrace.core.controller.commands import IsrAlteration, IsrChange, IsrMember, IsrResults
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.recoveries import LogEnd, needs_recovery
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, TopicId
from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.links import LinkNetwork
from headrace.sim.machines.members import Content, ReportedLogEnds, SimulatedMember
from headrace.sim.trace import Trace

Key = tuple[TopicId, int]

TICK_MS_MAX = 60
LAG_MS_MAX = 300
ASK_AGAIN_MS = 300
MIN_INSYNC_REPLICAS = 2
EPOCH = 1_000_000
"""A record is its leader epoch times this, and a number."""


def matching(one: list[int], other: list[int]) -> int:
    """Return the length of the common beginning."""
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return position
    return min(len(one), len(other))


class LedPartition:
    """The leader's view in one leader epoch."""

    def __init__(self, state: PartitionState, now_ms: float) -> None:
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.isr = state.isr
        self.pending: tuple[IsrMember, ...] | None = None
        self.asked_ms = 0.0
        self.began_ms = now_ms
        self.progress: dict[NodeId, tuple[int, int, float]] = {}
        """The records of each follower, its broker epoch, and the time of its fetch."""

    def take(self, state: PartitionState) -> None:
        if state.partition_epoch > self.partition_epoch:
            self.partition_epoch, self.isr, self.pending = state.partition_epoch, state.isr, None

    def answered(self, error: ErrorCode) -> None:
        """Take the result of a change: only this error says that it was not and will not be committed."""
        if error == ErrorCode.INELIGIBLE_REPLICA:
            self.pending = None

    @property
    def waited_for(self) -> frozenset[NodeId]:
        return frozenset(self.isr) | {member.node_id for member in self.pending or ()}


class PartitionNode:
    def __init__(
        self,
        member: SimulatedMember,
        *,
        links: LinkNetwork,
        entropy: SeededEntropy,
        trace: Trace,
        node_of: "Callable[[int], PartitionNode]",
        member_of: Callable[[int], SimulatedMember],
        committed: "Callable[[PartitionNode, Key, list[int]], None]",
    ) -> None:
        self.member = member
        self._links = links
        self._entropy = entropy
        self._trace = trace
        self._node_of = node_of
        self._member_of = member_of
        self._committed = committed
        self.logs: dict[Key, list[int]] = {}
        self.led: dict[Key, LedPartition] = {}
        self._asked: dict[tuple[Key, int, int], dict[NodeId, int]] = {}
        """Broker epochs of the requested members, by partition, leader epoch and partition epoch."""
        self._fetches: dict[Key, int] = {}
        self._records = 0
        self._boots = 0
        self._losses = 0
        self._losses_at: dict[bytes, int] = {}
        self._directory = member.replica.key.directory_id
        member.on_started = self._started
        self._started()

    @property
    def node_id(self) -> NodeId:
        return self.member.node_id

    # Crashes

    def _started(self) -> None:
        """Begin a process with what the former one left."""
        if self.member.replica.key.directory_id != self._directory:
            self._directory = self.member.replica.key.directory_id
            self.logs.clear()
            self._losses += 1
        elif self._boots == 0 or self._entropy.one_in(2):
            self._boots += 1
            self.member.boot_id = f"{self.node_id}.{self._boots}"
            self._lose_tails()
        self._losses_at[self.member.replica.boots.to_bytes(16, "big")] = self._losses
        self.led.clear()
        self.member.later(self._entropy.below(TICK_MS_MAX), self._tick)

    def _lose_tails(self) -> None:
        self._losses += 1
        for log in self.logs.values():
            if log and self._entropy.one_in(2):
                self._trace.count_fault("unsynced records lost")
                del log[self._entropy.below(len(log)) :]

    def has_lost_since(self, incarnation: bytes) -> bool:
        """Return whether records may have been lost that the process with this registration had."""
        return self._losses_at.get(incarnation) != self._losses

    # Time

    def _tick(self) -> None:
        self.member.later(1 + self._entropy.below(TICK_MS_MAX), self._tick)
        own = self.member.image.brokers.get(self.node_id)
        if own is None or own.broker_epoch != self.member.lifecycle.broker_epoch:
            self.led.clear()
            return  # a broker opens its partitions when its image has reached its registration
        unled = []
        for key, state in self._states():
            if state.leader == self.node_id:
                self._lead(key, state)
            else:
                self.led.pop(key, None)
                if state.leader >= 0 and self.node_id in state.replicas:
                    self._fetch(key, state)
                elif needs_recovery(state) and self.node_id in state.last_known_elr:
                    log = self.logs.get(key, [])
                    unled.append(LogEnd(*key, log[-1] // EPOCH if log else -1, len(log)))
        if unled:
            epoch = self.member.lifecycle.broker_epoch
            self._send(ReportedLogEnds(self.node_id, epoch, unled), lambda _response: None)

    def _states(self) -> Iterator[tuple[Key, PartitionState]]:
        for topic in tuple(self.member.image.topics.values()):
            for index, state in enumerate(topic.partitions):
                yield (topic.topic_id, index), state

    # Followers

    def _fetch(self, key: Key, state: PartitionState) -> None:
        number = self._fetches[key] = self._fetches.get(key, 0) + 1
        leader, log = self._node_of(state.leader), list(self.logs.get(key, []))
        epoch, broker_epoch = state.leader_epoch, self.member.lifecycle.broker_epoch
        reply = partial(self._fetched, key, epoch, number, self.member.replica.boots)
        take = partial(leader.serve, key, epoch, self.node_id, broker_epoch, log, reply)
        self._links.send_once(self.node_id, leader.node_id, partial(leader.member.replica.when_running, take))

    def _fetched(self, key: Key, epoch: int, number: int, boots: int, log: list[int]) -> None:
        topic = self.member.image.topics_by_id.get(key[0])
        if topic is None or not self.member.is_running or self.member.replica.boots != boots:
            return
        if topic.partitions[key[1]].leader_epoch == epoch and self._fetches.get(key) == number:
            self.logs[key] = log

    # Leaders

    def serve(
        self,
        key: Key,
        epoch: int,
        follower: NodeId,
        broker_epoch: int,
        log: list[int],
        reply: Callable[[list[int]], None],
    ) -> None:
        """Take a fetch, which proves that the follower has what its log has in common with the leader's."""
        led = self.led.get(key) if self.member.is_running else None
        if led is None or led.leader_epoch != epoch:
            return
        own = self.logs.setdefault(key, [])
        led.progress[follower] = (matching(own, log), broker_epoch, self.member.replica.local_ms())
        self._commit(key, led)
        answer = partial(reply, list(own))
        target = self._node_of(follower).member.replica
        self._links.send_once(self.node_id, follower, partial(target.when_running, answer))

    def _lead(self, key: Key, state: PartitionState) -> None:
        led = self.led.get(key)
        if led is None or led.leader_epoch != state.leader_epoch:
            led = self.led[key] = LedPartition(state, self.member.replica.local_ms())
        led.take(state)
        log = self.logs.setdefault(key, [])
        if self._entropy.one_in(3):
            self._records += 1
            log.append(led.leader_epoch * EPOCH + self._records * 10 + self.node_id)
        self._commit(key, led)
        self._change_isr(key, led, state)

    def _commit(self, key: Key, led: LedPartition) -> None:
        if len(led.isr) < MIN_INSYNC_REPLICAS:
            return
        log = self.logs.get(key, [])
        waited_for = led.waited_for - {self.node_id}
        ends = [led.progress[node][0] if node in led.progress else 0 for node in sorted(waited_for)]
        self._committed(self, key, log[: min([len(log), *ends])])

    def _change_isr(self, key: Key, led: LedPartition, state: PartitionState) -> None:
        now_ms, log = self.member.replica.local_ms(), self.logs.get(key, [])
        if led.pending is not None:
            if now_ms - led.asked_ms >= ASK_AGAIN_MS:
                self._ask(key, led)
            return
        wanted: list[IsrMember] = []
        for node in state.replicas:
            end, epoch, at_ms = led.progress.get(node, (-1, -1, led.began_ms))
            is_late = now_ms - at_ms > LAG_MS_MAX
            if node == self.node_id:
                wanted.append(IsrMember(node, self.member.lifecycle.broker_epoch))
            elif node in led.isr and not is_late:
                broker = self.member.image.brokers.get(node)
                wanted.append(IsrMember(node, epoch if epoch >= 0 or broker is None else broker.broker_epoch))
            elif node not in led.isr and end == len(log) and not is_late:
                wanted.append(IsrMember(node, epoch))
        if {member.node_id for member in wanted} != set(led.isr):
            led.pending = tuple(wanted)
            self._ask(key, led)

    def _ask(self, key: Key, led: LedPartition) -> None:
        assert led.pending is not None
        led.asked_ms = self.member.replica.local_ms()
        self._asked[key, led.leader_epoch, led.partition_epoch] = {
            member.node_id: member.broker_epoch for member in led.pending
        }
        change = IsrChange(*key, led.leader_epoch, led.partition_epoch, led.pending)
        epoch = self.member.lifecycle.broker_epoch
        alteration = IsrAlteration(node_id=self.node_id, broker_epoch=epoch, changes=[change])
        self._send(alteration, partial(self._answered, key, led, led.partition_epoch))

    def _answered(self, key: Key, led: LedPartition, partition_epoch: int, response: Any) -> None:
        if not isinstance(response, IsrResults) or self.led.get(key) is not led:
            return
        if led.partition_epoch != partition_epoch:
            return
        for result in response.results:
            if result.error:
                self._trace.count_fault(f"in-sync set refused: {result.error.name}")
            led.answered(result.error)

    def asked_epoch(self, key: Key, state: PartitionState, joined: NodeId) -> int | None:
        """Return the broker epoch with which this leader asked for a member, on this state."""
        return self._asked.get((key, state.leader_epoch, state.partition_epoch), {}).get(joined)

    def _send(self, content: Content, answered: Callable[[Any], None]) -> None:
        machine = self.member.replica.machine
        leader = machine.state.leader if machine is not None else None
        if leader is not None:
            to, boots = self._member_of(leader.node_id), self.member.replica.boots

            def answer(response: Any) -> None:
                if self.member.is_running and self.member.replica.boots == boots:
                    answered(response)

            self._links.send_once(self.node_id, to.node_id, partial(to.take, content, answer))

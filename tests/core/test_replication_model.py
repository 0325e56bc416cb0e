"""Leader and followers of one partition as a model cluster: in any order of events no acknowledged record is lost, and
equal epochs at equal offsets mean equal logs.
"""

from dataclasses import dataclass, field
from random import Random

import pytest

from headrace.core.replication.follower import Follower
from headrace.core.replication.leader import FollowerFetch, Leader
from headrace.core.replication.role import (
    NO_BROKER_EPOCH,
    DivergingEpoch,
    Effects,
    ExpandIsr,
    FetchFrom,
    ReplicaRole,
    RestartAt,
    ShrinkIsr,
    TruncateTo,
)
from headrace.log.leader_epochs import LeaderEpochs
from headrace.model.ids import LeaderEpoch, NodeId, Offset

REPLICAS = (NodeId(1), NodeId(2), NodeId(3))
LAG_MS = 1_000
BATCHES_PER_FETCH = 3
ROUNDS_TO_HEAL = 60
SEEDS = 500
STEPS = 200

Batch = tuple[int, int]
"""(leader epoch, number of the record)."""


@dataclass
class Answer:
    role: Follower
    diverging: DivergingEpoch | None
    batches: list[Batch]
    high_watermark: int


@dataclass
class Replica:
    node: NodeId
    broker_epoch: int
    log: list[Batch] = field(default_factory=list)
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    role: ReplicaRole | None = None
    high_watermark: int = 0
    cut_to: int | None = None
    request: tuple[Follower, FetchFrom, int] | None = None
    """A fetch on its way: the role and the broker epoch that sent it. It outlives the process."""
    answer: Answer | None = None

    @property
    def end(self) -> Offset:
        return Offset(len(self.log))

    @property
    def last_epoch(self) -> int:
        return self.log[-1][0] if self.log else -1

    def append(self, batches: list[Batch]) -> None:
        for batch in batches:
            self.epochs.assign(batch[0], len(self.log))
            self.log.append(batch)

    def cut(self) -> None:
        if self.cut_to is not None:
            assert isinstance(self.role, Follower | None)
            del self.log[self.cut_to :]
            self.epochs.truncate_from(len(self.log))
            self.cut_to = None
            if isinstance(self.role, Follower):
                self.role.truncated(log_start=Offset(0), log_end=self.end, last_epoch=self.last_epoch)


@dataclass
class Proposal:
    leader_epoch: int
    change: ShrinkIsr | ExpandIsr
    leader: Replica
    role: Leader


class Cluster:
    def __init__(self, min_insync: int) -> None:
        self.min_insync = min_insync
        self.now_ms = 0
        self.records = 0
        self.replicas = {node: Replica(node, broker_epoch=int(node)) for node in REPLICAS}
        self.broker_epochs = 10
        self.leader, self.leader_epoch, self.partition_epoch = REPLICAS[0], 0, 0
        self.isr: tuple[NodeId, ...] = REPLICAS
        self.proposals: list[Proposal] = []
        self.acknowledged: dict[int, Batch] = {}
        for replica in self.replicas.values():
            self.learn(replica)

    # Metadata

    def learn(self, replica: Replica) -> None:
        """Let a node apply the committed metadata."""
        role = replica.role
        if role is not None:
            replica.high_watermark = role.high_watermark
        if replica.cut_to is not None:
            return  # as the broker does: the log accepts nothing, so its role changes when the cut is done
        if self.leader == replica.node:
            if isinstance(role, Leader) and role.leader_epoch == self.leader_epoch:
                role.partition_changed(REPLICAS, self.isr, self.partition_epoch)
                return
            replica.epochs.forget_above(self.leader_epoch)
            replica.epochs.assign(self.leader_epoch, replica.end)
            replica.role = Leader(
                node=replica.node,
                leader_epoch=LeaderEpoch(self.leader_epoch),
                partition_epoch=self.partition_epoch,
                replicas=REPLICAS,
                isr=self.isr,
                log_end=replica.end,
                flushed=replica.end,
                high_watermark=Offset(replica.high_watermark),
                min_insync_replicas=self.min_insync,
                replica_lag_ms_max=LAG_MS,
                now_ms=self.now_ms,
            )
        elif role is None or role.leader_epoch != self.leader_epoch:
            replica.epochs.truncate_from(replica.end)
            replica.role = Follower(
                leader=self.leader,
                leader_epoch=LeaderEpoch(self.leader_epoch),
                partition_epoch=self.partition_epoch,
                log_start=Offset(0),
                log_end=replica.end,
                last_epoch=replica.last_epoch,
                flushed=replica.end,
                high_watermark=Offset(replica.high_watermark),
            )

    def elect(self, node: NodeId) -> None:
        if node in self.isr:
            if node != self.leader and len(self.isr) > 1:
                self.isr = tuple(each for each in self.isr if each != self.leader)  # it is fenced
            self.leader, self.leader_epoch, self.partition_epoch = node, self.leader_epoch + 1, self.partition_epoch + 1

    def restart(self, replica: Replica, *, loses_log: bool) -> None:
        """Start a new process. One whose machine failed leaves the in-sync set as it registers."""
        others = tuple(node for node in self.isr if node != replica.node)
        if loses_log and (not others or replica.node not in self.isr or self.leader == replica.node):
            return
        self.broker_epochs += 1
        replica.broker_epoch = self.broker_epochs
        replica.role = replica.answer = None
        if loses_log:
            replica.log, replica.epochs, replica.high_watermark = [], LeaderEpochs(), 0
            replica.cut_to = None
            self.isr, self.partition_epoch = others, self.partition_epoch + 1
        elif self.leader == replica.node:
            self.leader_epoch, self.partition_epoch = self.leader_epoch + 1, self.partition_epoch + 1

    def decide(self) -> None:
        """Let the controller decide about the oldest proposed change."""
        if not self.proposals:
            return
        proposal = self.proposals.pop(0)
        change = proposal.change
        epochs = dict(zip(change.isr, change.broker_epochs, strict=True))
        if proposal.leader_epoch != self.leader_epoch or change.partition_epoch != self.partition_epoch:
            return  # the leader learns of a newer partition epoch from the metadata
        known = all(epoch in (NO_BROKER_EPOCH, self.replicas[node].broker_epoch) for node, epoch in epochs.items())
        if not known:
            if proposal.leader.role is proposal.role:
                proposal.role.isr_change_refused()
            return
        self.isr, self.partition_epoch = change.isr, self.partition_epoch + 1

    # Data

    def see(self, replica: Replica, role: Leader, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, ShrinkIsr | ExpandIsr):
                self.proposals.append(Proposal(role.leader_epoch, effect, replica, role))
        if role.acks_all_allowed:
            for offset in range(role.high_watermark):
                known = self.acknowledged.setdefault(offset, replica.log[offset])
                assert known == replica.log[offset], "an acknowledged record has changed"

    def produce(self, replica: Replica) -> None:
        role = replica.role
        if isinstance(role, Leader):
            self.records += 1
            replica.append([(role.leader_epoch, self.records)])
            self.see(replica, role, role.log_appended(replica.end))

    def ask(self, replica: Replica) -> None:
        role = replica.role
        if isinstance(role, Follower) and replica.request is None and replica.answer is None:
            fetch = role.next_fetch()
            replica.request = None if fetch is None else (role, fetch, replica.broker_epoch)

    def serve(self, replica: Replica) -> None:
        """Let the leader that a request was sent to answer it."""
        if replica.request is None:
            return
        asking, fetch, broker_epoch = replica.request
        replica.request = None
        leader = self.replicas[asking.leader]
        role = leader.role
        if not isinstance(role, Leader):
            return
        effects = role.follower_fetched(
            FollowerFetch(
                replica=replica.node,
                leader_epoch=asking.leader_epoch,
                broker_epoch=broker_epoch,
                registered_epoch=NO_BROKER_EPOCH,
                may_join=True,
                offset=fetch.offset,
                last_fetched_epoch=fetch.last_fetched_epoch,
                epoch_end=leader.epochs.end_of(fetch.last_fetched_epoch, len(leader.log)),
            ),
            self.now_ms,
        )
        if asking.leader_epoch != role.leader_epoch:
            return
        diverging = next((effect for effect in effects if isinstance(effect, DivergingEpoch)), None)
        self.see(leader, role, effects)
        batches = [] if diverging else leader.log[fetch.offset : fetch.offset + BATCHES_PER_FETCH]
        replica.answer = Answer(asking, diverging, batches, role.high_watermark)

    def deliver(self, replica: Replica) -> None:
        answer, replica.answer = replica.answer, None
        role = replica.role
        if answer is None or answer.role is not role:
            return
        assert isinstance(role, Follower)
        if answer.diverging is not None:
            epoch, end_offset = answer.diverging
            own = replica.epochs.end_of(epoch, len(replica.log))
            (effect,) = role.diverging_epoch(epoch, end_offset, own)
            assert isinstance(effect, TruncateTo | RestartAt)
            replica.cut_to = effect.offset
            return
        replica.append(answer.batches)
        role.appended(replica.end, replica.last_epoch)
        role.fetched(leader_high_watermark=answer.high_watermark, leader_log_start=0)

    def check_lag(self, replica: Replica) -> None:
        self.now_ms += LAG_MS // 2
        if isinstance(replica.role, Leader):
            self.see(replica, replica.role, replica.role.check_lag(self.now_ms))

    # What must hold

    def check(self) -> None:
        for node in self.isr:
            log = self.replicas[node].log
            for offset, batch in self.acknowledged.items():
                assert log[offset : offset + 1] == [batch], f"replica {node} in sync lacks acknowledged offset {offset}"
        logs = [replica.log for replica in self.replicas.values()]
        for one in logs:
            for other in logs:
                for offset in reversed(range(min(len(one), len(other)))):
                    if one[offset][0] == other[offset][0]:
                        assert one[: offset + 1] == other[: offset + 1], "equal epochs at one offset, unequal logs"
                        break

    def heal(self) -> None:
        """Let everything arrive until all replicas are equal."""
        for _ in range(ROUNDS_TO_HEAL):
            for replica in self.replicas.values():
                replica.cut()
                self.learn(replica)
                self.ask(replica)
                self.serve(replica)
                self.deliver(replica)
                self.decide()


VERBS = {
    "produce": 6, "ask": 4, "serve": 4, "deliver": 4, "fetch": 12, "cut": 4, "learn": 6, "elect": 2, "restart": 1,
    "lose log": 1, "check lag": 1, "decide": 4,
}  # fmt: skip
"""The events and their relative frequency."""


@pytest.mark.slow
@pytest.mark.parametrize("min_insync", [1, 2])
def test_no_acknowledged_record_is_lost(min_insync: int) -> None:
    for seed in range(SEEDS):
        try:
            run(Random(seed), Cluster(min_insync))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, min_insync {min_insync}: {error}") from error


def run(random: Random, cluster: Cluster) -> None:
    for verb in random.choices(tuple(VERBS), weights=tuple(VERBS.values()), k=STEPS):
        node = random.choice(REPLICAS)
        replica = cluster.replicas[node]
        match verb:
            case "produce":
                cluster.produce(replica)
            case "ask":
                cluster.ask(replica)
            case "serve":
                cluster.serve(replica)
            case "deliver":
                cluster.deliver(replica)
            case "fetch":
                cluster.ask(replica)
                cluster.serve(replica)
                cluster.deliver(replica)
            case "cut":
                replica.cut()
            case "learn":
                cluster.learn(replica)
            case "elect":
                cluster.elect(node)
            case "restart" | "lose log":
                cluster.restart(replica, loses_log=verb == "lose log")
            case "check lag":
                cluster.check_lag(replica)
            case "decide":
                cluster.decide()
        cluster.check()
    cluster.heal()
    leader = cluster.replicas[cluster.leader]
    assert all(replica.log == leader.log for replica in cluster.replicas.values()), "the replicas never became equal"
    assert set(cluster.isr) == set(REPLICAS), "a replica with everything never joined again"
    cluster.check()

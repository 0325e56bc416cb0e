"""Members of a group against a coordinator made of plain state: whatever happens, no partition has two owners."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client.core.calls import Pause
from headrace.client.core.cluster import Cluster
from headrace.client.core.consumer import ConsumerCore, ConsumerSettings
from headrace.client.core.fetch_requests import FetchSettings
from headrace.client.core.groups.group import GroupCore
from headrace.client.core.groups.membership import MembershipSettings
from headrace.client.errors import BrokerUnreachable
from headrace.client.types import EARLIEST
from headrace.model.errors import ErrorCode
from headrace.wire.messages import fetch, list_offsets, metadata, offset_for_leader_epoch

from .model_cluster import TOPIC, ModelCluster, Wires
from .model_group import ClassicCoordinator, ConsumerGroupCoordinator, Coordinator

PARTITIONS = 3
MEMBERS_MAX = 3
assert MEMBERS_MAX <= PARTITIONS, "so that there is something for everyone"
FINISH_STEPS_MAX = 1_500
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {"assignors": ("range",)},
    "cooperative": {"assignors": ("cooperative-sticky",)},
    "kip-848": {"protocol": "consumer"},
}
OF_LEADERS = (
    metadata.MetadataRequest,
    fetch.FetchRequest,
    list_offsets.ListOffsetsRequest,
    offset_for_leader_epoch.OffsetForLeaderEpochRequest,
)
STEPS = 400
WEIGHTS = {
    "progress": 30,
    "poll": 8,
    "serve": 10,
    "deliver": 10,
    "tell": 6,
    "take": 4,
    "wait": 5,
    "append": 2,
    "cut": 2,
    "join": 1,
    "leave": 1,
    "moved": 1,
    "loading": 1,
    "busy": 1,
}


class Member:
    def __init__(self, name: str, world: "World") -> None:
        self.own_cluster = ModelCluster(0)
        self.own_cluster.logs = world.shared.logs
        self.wires = Wires(self._serve)
        self._coordinator = world.coordinator
        cluster = Cluster()
        fetches = FetchSettings(partition_bytes_max=300)
        self.consumer = ConsumerCore(ConsumerSettings(reset_to=EARLIEST, fetches=fetches), cluster)
        group_settings = MembershipSettings(
            **{
                "group_id": "g",
                "heartbeat_interval_ms": 50,
                "retry_pause_ms": 10,
                "auto_commit_interval_ms": 20,
                **PROTOCOLS[world.protocol],
            }
        )
        self.group = GroupCore(group_settings, cluster, self.consumer, member_id=name)
        self.group.subscribe([TOPIC])

    def _serve(self, node: int, message: Any, answer: Any) -> None:
        if isinstance(message, OF_LEADERS):
            answer(self.own_cluster.answer(node, message))
        else:
            self._coordinator.serve(message, answer)

    def poll(self, now_ms: float) -> float:
        calls, wakeup_ms = self.group.poll(now_ms)
        for pending in calls:
            self.wires.send(pending)
        return wakeup_ms

    def tell(self, now_ms: float) -> None:
        notice = self.group.notice()
        if notice is not None:
            self.group.begin(notice)
            self.group.finish(notice, now_ms)


class World:
    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.coordinator: Coordinator = (
            ConsumerGroupCoordinator(PARTITIONS) if protocol == "kip-848" else ClassicCoordinator(PARTITIONS)
        )
        self.shared = ModelCluster(PARTITIONS)
        self.members: list[Member] = []
        self.named = 0
        self.now_ms = 1_000.0
        self.read: list[set[int]] = [set() for _ in range(PARTITIONS)]
        self.join()

    def join(self) -> None:
        if len(self.members) < MEMBERS_MAX:
            self.named += 1
            self.members.append(Member(f"m{self.named}", self))

    def leave(self, place: int) -> None:
        """Its farewell may not arrive; then its session ends some time later, when it reads nothing any more."""
        if len(self.members) < 2:
            return
        member = self.members.pop(place % len(self.members))
        member_id = member.group.identity().member_id
        farewell = member.group.leave()
        for step in farewell:
            assert not isinstance(step, Pause)
            if place % 2:
                for call in step:
                    self.coordinator.serve(call.message, lambda _reply: None)
            try:
                farewell.send([BrokerUnreachable("its answer is not awaited")])
            except StopIteration:
                break
        self.coordinator.remove(member_id)

    def act(self, name: str, choice: int) -> None:
        member = self.members[choice % len(self.members)]
        match name:
            case "progress":
                self.progress(member, choice)
            case "poll":
                member.poll(self.now_ms)
            case "serve":
                member.wires.serve(choice)
            case "deliver":
                member.wires.deliver(choice, self.now_ms)
            case "tell":
                member.tell(self.now_ms)
            case "take":
                self.take(member)
            case "wait":
                self.now_ms += 25
            case "append":
                self.shared.logs[choice % PARTITIONS].append()
            case "cut":
                member.wires.cut(choice, self.now_ms)
            case "join":
                self.join()
            case "leave":
                self.leave(choice)
            case "moved":
                self.coordinator.faults.append(ErrorCode.NOT_COORDINATOR)
            case "loading":
                self.coordinator.faults.append(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            case "busy":
                self.coordinator.faults.append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.check_owners()

    def progress(self, member: Member, choice: int) -> None:
        """Let a member do everything while nothing is in its way."""
        member.poll(self.now_ms)
        for step in range(4):
            member.wires.serve(choice + step)
            member.wires.deliver(choice + step, self.now_ms)
        member.tell(self.now_ms)
        self.take(member)
        self.now_ms += 5

    def take(self, member: Member) -> None:
        member.group.polled(self.now_ms)
        owned = {place.partition for place in member.group.owned()}
        for record in member.consumer.take(3):
            assert record.partition in owned, "a record of a partition that is not owned"
            self.read[record.partition].add(record.offset)

    def check_owners(self) -> None:
        owners: dict[Any, int] = {}
        for place, member in enumerate(self.members):
            for partition in member.group.owned():
                assert partition not in owners, f"{partition} belongs to members {owners[partition]} and {place}"
                owners[partition] = place

    def is_done(self) -> bool:
        shares = [len(member.group.owned()) for member in self.members]
        return (
            sum(shares) == PARTITIONS
            and min(shares) >= 1
            and all(len(read) == log.end for read, log in zip(self.read, self.shared.logs, strict=True))
        )

    def finish(self) -> None:
        """Without more faults partitions have owners, every member owns some, and all is read; within bounded steps."""
        self.coordinator.faults.clear()
        for step in range(FINISH_STEPS_MAX):
            if self.is_done():
                return
            for member in self.members:
                self.progress(member, step)
                self.check_owners()
        raise AssertionError(f"the group does not settle: {[member.group.owned() for member in self.members]}")


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_no_partition_has_two_owners_and_everything_is_read(protocol: str, seed: int) -> None:
    world = World(protocol)
    draw = random.Random(seed)
    for name in draw.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS):
        world.act(name, draw.randrange(12))
    for log in world.shared.logs:
        log.append()
    world.finish()

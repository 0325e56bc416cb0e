"""Leaders that redirect to each other and groups that never settle: waits end, and every request follows a pause."""

from typing import Any

import pytest

from headrace.client.core.accumulator import ProducerSettings
from headrace.client.core.cluster import Cluster
from headrace.client.core.consumer import ConsumerCore, ConsumerSettings
from headrace.client.core.fetch_requests import FetchSettings
from headrace.client.core.groups.group import GroupCore
from headrace.client.core.groups.membership import MembershipSettings
from headrace.client.core.producer import ProducerCore
from headrace.client.core.ranges import RangeReader
from headrace.client.errors import DeadlineExceeded
from headrace.client.types import EARLIEST
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.messages import (
    consumer_group_heartbeat,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
    sync_group,
)

TOPIC_ID = bytes(range(16))
T0 = TopicPartition("t", 0)
SECONDS = 5
REQUESTS_PER_SECOND_MAX = 60
"""A pause of 100 ms between attempts, two hops in each, and some metadata."""


class Flapping:
    """Two nodes; each says that the other has just become the leader, with an epoch that is new to the client."""

    def __init__(self, *, names_leader: bool) -> None:
        self.names_leader = names_leader
        self.addresses = {1: ("h", 1), 2: ("h", 2)}
        self.epoch = 0
        self.requests = 0
        self.nodes: set[int] = set()

    def answer(self, node: int, message: Any) -> Any:
        self.requests += 1
        self.epoch += 1
        other = 2 if node == 1 else 1
        match message:
            case metadata.MetadataRequest():
                partition = metadata.MetadataResponsePartition(
                    partition_index=0, leader_id=1 + self.epoch % 2, leader_epoch=self.epoch
                )
                topic = metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=(partition,))
                brokers = tuple(
                    metadata.MetadataResponseBroker(node_id=node, host=host, port=port)
                    for node, (host, port) in self.addresses.items()
                )
                return metadata.MetadataResponse(brokers=brokers, topics=(topic,))
            case init_producer_id.InitProducerIdRequest():
                return init_producer_id.InitProducerIdResponse(producer_id=1, producer_epoch=0)
            case list_offsets.ListOffsetsRequest():
                found = list_offsets.ListOffsetsResponsePartition(partition_index=0, offset=0)
                topic_found = list_offsets.ListOffsetsResponseTopic(name="t", partitions=(found,))
                return list_offsets.ListOffsetsResponse(topics=(topic_found,))
            case offset_for_leader_epoch.OffsetForLeaderEpochRequest():
                return offset_for_leader_epoch.OffsetForLeaderEpochResponse()
            case produce.ProduceRequest():
                self.nodes.add(node)
                return self._refuse_produce(other)
        self.nodes.add(node)
        return self._refuse_fetch(other)

    def _refuse_produce(self, other: int) -> produce.ProduceResponse:
        leader = produce.ProduceResponseCurrentLeader()
        if self.names_leader:
            leader = produce.ProduceResponseCurrentLeader(leader_id=other, leader_epoch=self.epoch)
        answer = produce.ProduceResponsePartition(
            index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader
        )
        topic = produce.ProduceResponseTopic(name="t", topic_id=TOPIC_ID, partition_responses=(answer,))
        return produce.ProduceResponse(responses=(topic,))

    def _refuse_fetch(self, other: int) -> fetch.FetchResponse:
        leader = fetch.FetchResponseCurrentLeader()
        if self.names_leader:
            leader = fetch.FetchResponseCurrentLeader(leader_id=other, leader_epoch=self.epoch)
        answer = fetch.FetchResponsePartition(
            partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader
        )
        topic = fetch.FetchResponseTopic(topic_id=TOPIC_ID, partitions=(answer,))
        return fetch.FetchResponse(responses=(topic,))


def drive(core: Any, answer: Any, *, seconds: float = SECONDS) -> None:
    """Let time pass as a front would: answers take a millisecond, and nothing is polled before its time."""
    now_ms = 0.0
    while now_ms < seconds * 1_000:
        calls, wakeup_ms = core.poll(now_ms)
        for pending in calls:
            pending.completed(answer(max(pending.call.target, 1), pending.call.message), now_ms)
        now_ms = now_ms + 1 if calls else min(max(wakeup_ms, now_ms + 1), now_ms + 1_000)


@pytest.mark.parametrize("names_leader", [True, False])
def test_a_producer_gives_up_in_time(names_leader: bool) -> None:
    world = Flapping(names_leader=names_leader)
    cluster = Cluster()
    core = ProducerCore(ProducerSettings(delivery_timeout_ms=3_000, linger_ms=0), cluster, lambda _bound: 0)
    cluster.want(["t"])
    drive(core, world.answer, seconds=0.1)
    appended = core.append("t", 0, 1, None, b"v", (), 0.0)
    assert appended is not None
    drive(core, world.answer)
    assert isinstance(appended.batch.error, DeadlineExceeded)
    assert "NOT_LEADER_OR_FOLLOWER" in str(appended.batch.error)
    assert world.nodes == {1, 2}
    assert world.requests < REQUESTS_PER_SECOND_MAX * SECONDS


@pytest.mark.parametrize("names_leader", [True, False])
@pytest.mark.parametrize("kind", ["consumer", "ranges"])
def test_a_reader_asks_with_pauses(kind: str, names_leader: bool) -> None:
    world = Flapping(names_leader=names_leader)
    cluster = Cluster()
    core: Any
    if kind == "consumer":
        core = ConsumerCore(ConsumerSettings(reset_to=EARLIEST), cluster)
        core.subscribe(["t"])
    else:
        core = RangeReader(FetchSettings(), cluster, {T0: (0, 5)}, held_bytes_max=1_000_000)
    drive(core, world.answer)
    assert world.nodes == {1, 2} if names_leader else world.nodes
    assert world.requests < REQUESTS_PER_SECOND_MAX * SECONDS
    assert (core.take(10) if kind == "consumer" else core.take()) in ([], None)


def test_a_replica_that_the_leader_prefers_and_that_refuses() -> None:
    """KIP-392 gone wrong: the leader names a replica, and the replica serves no client."""
    asked = {1: 0, 2: 0}

    def answer(node: int, message: Any) -> Any:
        if isinstance(message, metadata.MetadataRequest):
            partition = metadata.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=1)
            topic = metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=(partition,))
            brokers = tuple(metadata.MetadataResponseBroker(node_id=each, host="h", port=each) for each in (1, 2))
            return metadata.MetadataResponse(brokers=brokers, topics=(topic,))
        asked[node] += 1
        error = ErrorCode.NONE if node == 1 else ErrorCode.REPLICA_NOT_AVAILABLE
        found = fetch.FetchResponsePartition(
            partition_index=0, error_code=error, preferred_read_replica=2 if node == 1 else -1
        )
        topic_found = fetch.FetchResponseTopic(topic_id=TOPIC_ID, partitions=(found,))
        return fetch.FetchResponse(responses=(topic_found,))

    core = ConsumerCore(ConsumerSettings(reset_to=EARLIEST), Cluster())
    core.assign([T0])
    core.seek(T0, 0)
    drive(core, answer)
    assert 10 < asked[2] < REQUESTS_PER_SECOND_MAX * SECONDS
    assert asked[1] < REQUESTS_PER_SECOND_MAX * SECONDS


class RestlessCoordinator:
    """A group that is in the middle of a rebalance for ever."""

    def __init__(self, code: ErrorCode, *, at: type) -> None:
        self.code, self.at = code, at
        self.address = ("h", 1)
        self.requests = 0

    def answer(self, _node: int, message: Any) -> Any:
        self.requests += 1
        code = self.code if isinstance(message, self.at) else ErrorCode.NONE
        match message:
            case metadata.MetadataRequest():
                partition = metadata.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=1)
                topic = metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=(partition,))
                host, port = self.address
                broker = metadata.MetadataResponseBroker(node_id=1, host=host, port=port)
                return metadata.MetadataResponse(brokers=(broker,), topics=(topic,))
            case find_coordinator.FindCoordinatorRequest():
                return self._coordinator()
            case leave_group.LeaveGroupRequest():
                return leave_group.LeaveGroupResponse()
            case join_group.JoinGroupRequest():
                return join_group.JoinGroupResponse(
                    error_code=code, member_id="m", leader="other", generation_id=self.requests, protocol_name="range"
                )
            case sync_group.SyncGroupRequest():
                return sync_group.SyncGroupResponse(error_code=code)
            case heartbeat.HeartbeatRequest():
                return heartbeat.HeartbeatResponse(error_code=code)
        return consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(error_code=code)

    def _coordinator(self) -> find_coordinator.FindCoordinatorResponse:
        """In the form of older versions, and of those that name several."""
        host, port = self.address
        found = find_coordinator.FindCoordinatorResponseCoordinator(key="g", node_id=1, host=host, port=port)
        return find_coordinator.FindCoordinatorResponse(node_id=1, host=host, port=port, coordinators=(found,))


@pytest.mark.parametrize(
    ("protocol", "at", "code"),
    [
        ("classic", join_group.JoinGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS),
        ("classic", join_group.JoinGroupRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ("classic", join_group.JoinGroupRequest, ErrorCode.UNKNOWN_MEMBER_ID),
        ("classic", sync_group.SyncGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS),
        ("classic", sync_group.SyncGroupRequest, ErrorCode.ILLEGAL_GENERATION),
        ("classic", sync_group.SyncGroupRequest, ErrorCode.NOT_COORDINATOR),
        ("consumer", consumer_group_heartbeat.ConsumerGroupHeartbeatRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ("consumer", consumer_group_heartbeat.ConsumerGroupHeartbeatRequest, ErrorCode.FENCED_MEMBER_EPOCH),
        ("consumer", consumer_group_heartbeat.ConsumerGroupHeartbeatRequest, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_group_that_never_settles(protocol: str, at: type, code: ErrorCode) -> None:
    world = RestlessCoordinator(code, at=at)
    cluster = Cluster()
    consumer = ConsumerCore(ConsumerSettings(reset_to=EARLIEST), cluster)
    group = GroupCore(MembershipSettings(group_id="g", protocol=protocol), cluster, consumer, member_id="me")
    group.subscribe(["t"])
    drive(group, world.answer)
    group.polled(SECONDS * 1_000)
    assert consumer.take(10) == []
    assert group.owned() == ()
    assert world.requests < REQUESTS_PER_SECOND_MAX * SECONDS

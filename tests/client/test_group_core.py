"""Both protocols of groups against a scripted coordinator: requests, events, and the effect of late answers."""

from dataclasses import replace
from typing import Any

import pytest

from headrace.client.core.calls import Pause, PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.consumer import ConsumerCore, ConsumerSettings
from headrace.client.core.groups.consumer_protocol import encode_assignment
from headrace.client.core.groups.group import GroupCore
from headrace.client.core.groups.membership import MembershipSettings, NoticeKind
from headrace.client.errors import BadResponse, BrokerError, BrokerUnreachable
from headrace.client.types import EARLIEST, OffsetAndMetadata
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.messages import (
    consumer_group_heartbeat,
    fetch,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    sync_group,
)
from headrace.wire.records.builder import NewRecord, build_batch

TOPIC_ID = bytes(range(16))
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class World:
    """A member, and everything it asks answered as the fields say; `held` keeps fetches unanswered."""

    def __init__(self, protocol: str = "classic", **settings: Any) -> None:
        self.cluster = Cluster()
        self.consumer = ConsumerCore(ConsumerSettings(reset_to=EARLIEST), self.cluster)
        options = {"group_id": "g", "protocol": protocol, "auto_commit_interval_ms": None, "retry_pause_ms": 10}
        self.group = GroupCore(
            MembershipSettings(**{**options, **settings}), self.cluster, self.consumer, member_id="me"
        )
        self.group.subscribe(["t"])
        self.now_ms = 1_000.0
        self.assigned: tuple[TopicPartition, ...] = (T0, T1)
        self.epoch = 1
        self.errors: dict[type, list[int]] = {}
        """Codes that the next requests of a type are refused with."""
        self.unreachable: set[type] = set()
        self.asked: list[Any] = []
        self.holds_fetches = False
        self.held: list[PendingCall] = []
        self.told: list[tuple[NoticeKind, tuple[TopicPartition, ...]]] = []

    def step(self, *, acknowledge: bool = True) -> None:
        calls, _ = self.group.poll(self.now_ms)
        for pending in calls:
            message = pending.call.message
            self.asked.append(message)
            if isinstance(message, fetch.FetchRequest) and self.holds_fetches:
                self.held.append(pending)
            elif type(message) in self.unreachable:
                pending.completed(BrokerUnreachable("gone"), self.now_ms)
            else:
                pending.completed(self.answer(message), self.now_ms)
        self.now_ms += 50
        while acknowledge and (notice := self.group.notice()) is not None:
            self.told.append((notice.kind, notice.partitions))
            self.group.begin(notice)
            self.group.finish(notice, self.now_ms)

    def steps(self, count: int = 12) -> None:
        for _ in range(count):
            self.group.polled(self.now_ms)
            self.step()

    def requests(self, kind: type) -> list[Any]:
        return [message for message in self.asked if isinstance(message, kind)]

    def answer(self, message: Any) -> Any:
        codes = self.errors.get(type(message))
        error = codes.pop(0) if codes else 0
        match message:
            case metadata.MetadataRequest():
                parts = tuple(
                    metadata.MetadataResponsePartition(partition_index=n, leader_id=1, leader_epoch=1) for n in range(2)
                )
                topic = metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=parts)
                broker = metadata.MetadataResponseBroker(node_id=1, host="here", port=1)
                return metadata.MetadataResponse(brokers=(broker,), topics=(topic,))
            case find_coordinator.FindCoordinatorRequest():
                found = find_coordinator.FindCoordinatorResponseCoordinator(
                    key="g", node_id=1, host="here", port=1, error_code=error
                )
                return find_coordinator.FindCoordinatorResponse(coordinators=(found,))
            case join_group.JoinGroupRequest():
                if not error and not message.member_id:
                    error = ErrorCode.MEMBER_ID_REQUIRED
                return join_group.JoinGroupResponse(
                    error_code=error, member_id="me", leader="other", generation_id=self.epoch, protocol_name="range"
                )
            case sync_group.SyncGroupRequest():
                return sync_group.SyncGroupResponse(error_code=error, assignment=encode_assignment(self.assigned))
            case heartbeat.HeartbeatRequest():
                return heartbeat.HeartbeatResponse(error_code=error)
            case consumer_group_heartbeat.ConsumerGroupHeartbeatRequest():
                return self._epoch_answer(error)
            case offset_fetch.OffsetFetchRequest():
                return self._committed(message)
            case offset_commit.OffsetCommitRequest():
                return _commit_answer(message, error)
            case list_offsets.ListOffsetsRequest():
                return list_offsets.ListOffsetsResponse()
            case leave_group.LeaveGroupRequest():
                return leave_group.LeaveGroupResponse()
        return fetch.FetchResponse()

    def _epoch_answer(self, error: int) -> Any:
        api = consumer_group_heartbeat
        topic = api.ConsumerGroupHeartbeatResponseTopicPartitions(
            topic_id=TOPIC_ID, partitions=tuple(each.partition for each in self.assigned)
        )
        assignment = api.ConsumerGroupHeartbeatResponseAssignment(topic_partitions=(topic,))
        return api.ConsumerGroupHeartbeatResponse(
            error_code=error, member_id="me", member_epoch=self.epoch, heartbeat_interval_ms=100, assignment=assignment
        )

    def _committed(self, message: offset_fetch.OffsetFetchRequest) -> offset_fetch.OffsetFetchResponse:
        return offset_fetch.OffsetFetchResponse(
            topics=tuple(
                offset_fetch.OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        offset_fetch.OffsetFetchResponsePartition(partition_index=n, committed_offset=5)
                        for n in topic.partition_indexes
                    ),
                )
                for topic in message.topics or ()
            )
        )


def _commit_answer(message: offset_commit.OffsetCommitRequest, error: int) -> offset_commit.OffsetCommitResponse:
    return offset_commit.OffsetCommitResponse(
        topics=tuple(
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    offset_commit.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                    for each in topic.partitions
                ),
            )
            for topic in message.topics
        )
    )


HEARTBEATS: dict[str, type] = {
    "classic": heartbeat.HeartbeatRequest,
    "consumer": consumer_group_heartbeat.ConsumerGroupHeartbeatRequest,
}
FENCES = {"classic": ErrorCode.UNKNOWN_MEMBER_ID, "consumer": ErrorCode.FENCED_MEMBER_EPOCH}


@pytest.mark.parametrize("protocol", HEARTBEATS)
def test_a_member_begins_where_the_group_committed(protocol: str) -> None:
    world = World(protocol)
    world.steps()
    assert world.told == [(NoticeKind.ASSIGNED, (T0, T1))]
    assert (world.consumer.position(T0), world.consumer.position(T1)) == (5, 5)
    assert world.group.owned() == (T0, T1)


@pytest.mark.parametrize("protocol", HEARTBEATS)
def test_who_is_fenced_loses_everything_and_joins_with_nothing(protocol: str) -> None:
    world = World(protocol, heartbeat_interval_ms=100)
    world.steps()
    world.errors[HEARTBEATS[protocol]] = [FENCES[protocol]]
    world.told.clear()
    while world.group.notice() is None:
        world.step(acknowledge=False)
    joins = len(world.requests(join_group.JoinGroupRequest))
    beats = len(world.requests(HEARTBEATS[protocol]))
    for _ in range(5):
        world.step(acknowledge=False)
    # Until the application gave up what it lost, the member does not come back.
    assert len(world.requests(join_group.JoinGroupRequest)) == joins
    assert len(world.requests(HEARTBEATS[protocol])) == beats
    world.steps()
    assert [kind for kind, _ in world.told] == [NoticeKind.LOST, NoticeKind.ASSIGNED]
    if protocol == "consumer":
        rejoin = next(each for each in world.requests(HEARTBEATS[protocol])[beats:] if each.member_epoch == 0)
        assert rejoin.topic_partitions == ()


@pytest.mark.parametrize("protocol", HEARTBEATS)
def test_an_old_fetch_does_not_fill_a_new_assignment(protocol: str) -> None:
    world = World(protocol, heartbeat_interval_ms=100)
    world.holds_fetches = True
    world.steps()
    late = world.held.pop()
    world.errors[HEARTBEATS[protocol]] = [FENCES[protocol]]
    world.steps(20)
    batch = bytes(build_batch([NewRecord(1, None, b"old")], base_offset=5))
    answer = fetch.FetchResponsePartition(partition_index=0, records=batch)
    topic = fetch.FetchResponseTopic(topic_id=TOPIC_ID, partitions=(answer,))
    late.completed(fetch.FetchResponse(responses=(topic,)), world.now_ms)
    assert world.consumer.take(10) == []
    assert world.consumer.position(T0) == 5


def test_a_group_that_never_stabilises_is_asked_with_pauses() -> None:
    world = World()
    world.errors[join_group.JoinGroupRequest] = [ErrorCode.REBALANCE_IN_PROGRESS] * 1_000
    for _ in range(100):
        world.now_ms += 5 - 50
        world.step()
    # 500 ms with pauses of 10 ms.
    assert 10 < len(world.requests(join_group.JoinGroupRequest)) <= 51
    assert world.told == []


def test_a_coordinator_that_moves_is_found_again() -> None:
    world = World(heartbeat_interval_ms=100)
    world.steps()
    world.errors[heartbeat.HeartbeatRequest] = [ErrorCode.NOT_COORDINATOR]
    world.steps()
    assert len(world.requests(find_coordinator.FindCoordinatorRequest)) == 2
    assert world.told == [(NoticeKind.ASSIGNED, (T0, T1))]
    world.unreachable = {heartbeat.HeartbeatRequest}
    world.steps(20)
    assert len(world.requests(find_coordinator.FindCoordinatorRequest)) > 3
    assert world.group.owned() == (T0, T1)


def test_after_a_lost_answer_everything_is_said_again() -> None:
    """Kafka tells an assignment once, and again only to those who say everything: it may have been with that answer."""
    beat = HEARTBEATS["consumer"]
    world = World("consumer")
    world.steps()
    world.unreachable = {beat}
    world.steps(4)
    world.unreachable = set()
    world.asked.clear()
    world.steps()
    first, *others = world.requests(beat)
    assert (first.rebalance_timeout_ms, first.subscribed_topic_names) == (300_000, ("t",))
    assert first.topic_partitions[0].partitions == (0, 1)
    assert others
    assert {(each.rebalance_timeout_ms, each.subscribed_topic_names) for each in others} == {(-1, None)}


def test_an_assignment_is_confirmed_also_if_it_is_what_the_member_has() -> None:
    """It may take away what was given just before and never taken: the broker waits to hear of it."""
    beat = HEARTBEATS["consumer"]
    world = World("consumer")
    world.steps()
    world.asked.clear()
    world.steps()
    assert world.requests(beat)
    assert all(each.topic_partitions[0].partitions == (0, 1) for each in world.requests(beat))


def test_no_coordinator_for_long_is_reported() -> None:
    world = World()
    world.errors[find_coordinator.FindCoordinatorRequest] = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 100
    world.steps()
    assert world.group.lasting_error(world.now_ms, 10_000) is None
    trouble = world.group.lasting_error(world.now_ms + 10_000, 10_000)
    assert isinstance(trouble, BrokerError)
    assert 'group "g" has no coordinator' in str(trouble)


def run(world: World, operation: Any) -> Any:
    """Drive an operation with the world's answers."""
    replies: list[Any] | None = None
    try:
        for _ in range(100):
            step = operation.send(replies) if replies is not None else next(operation)
            replies = [] if isinstance(step, Pause) else [world.answer(call.message) for call in step]
            world.step()
    except StopIteration as end:
        return end.value
    raise AssertionError("the operation does not end")


def test_a_commit_waits_for_the_newer_epoch() -> None:
    world = World("consumer")
    world.steps()
    world.errors[offset_commit.OffsetCommitRequest] = [ErrorCode.STALE_MEMBER_EPOCH]
    world.epoch = 2
    run(world, world.group.commit({T0: OffsetAndMetadata(7)}))
    assert world.group.identity().generation == 2
    assert world.group.uncommitted().get(T0) == OffsetAndMetadata(5, "", -1)


def test_a_commit_of_a_former_member_is_refused() -> None:
    world = World()
    world.steps()
    world.errors[offset_commit.OffsetCommitRequest] = [ErrorCode.ILLEGAL_GENERATION]
    with pytest.raises(BrokerError, match="the group has rebalanced"):
        run(world, world.group.commit({T0: OffsetAndMetadata(7)}))
    world.steps()
    assert [kind for kind, _ in world.told] == [NoticeKind.ASSIGNED, NoticeKind.LOST, NoticeKind.ASSIGNED]


@pytest.mark.parametrize("protocol", HEARTBEATS)
def test_a_refusal_for_good_is_raised_at_every_poll(protocol: str) -> None:
    world = World(protocol)
    kind = join_group.JoinGroupRequest if protocol == "classic" else HEARTBEATS[protocol]
    world.errors[kind] = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    for _ in range(5):
        world.step()
    for _ in range(2):
        with pytest.raises(BrokerError, match='cannot be a member of group "g"'):
            world.group.polled(world.now_ms)


def test_a_coordinator_that_chooses_what_no_member_offered() -> None:
    world = World()
    honest = world.answer

    def lying(message: Any) -> Any:
        answer = honest(message)
        if isinstance(answer, join_group.JoinGroupResponse) and not answer.error_code:
            return replace(answer, leader="me", protocol_name="sticky")
        return answer

    world.answer = lying  # type: ignore[method-assign]
    with pytest.raises(BadResponse, match="chose 'sticky'"):
        world.steps()

"""Fetch sessions of the client against a broker's, which may forget, be full, or never get a request."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.core.consumer import ConsumerCore
from headrace.client.core.fetch_requests import FetchSettings, fetch_call
from headrace.client.core.fetch_sessions import EPOCH_MAX, ClientFetchSession, FetchPosition, Plan
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicPartition
from headrace.wire.messages import fetch

from .test_consumer_core import T0, World, batch

PLACES = [TopicPartition(topic, index) for topic in ("a", "b") for index in range(3)]


class BrokerSession:
    """A broker's memory of one client, from the requests that reach it."""

    def __init__(self) -> None:
        self.session_id = 0
        self.epoch = 0
        self.has_room = True
        self.ids_given = 0
        self.known: dict[tuple[str, bytes, int], tuple[int, int, int]] = {}

    def serve(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        if request.session_epoch > 0:
            if request.session_id != self.session_id:
                return fetch.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if request.session_epoch != self.epoch:
                return fetch.FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            self.epoch += 1
        else:
            self.known.clear()
            self.ids_given += self.has_room
            self.session_id, self.epoch = (self.ids_given, 1) if self.has_room else (0, 0)
        for gone in request.forgotten_topics_data:
            for index in gone.partitions:
                del self.known[gone.topic, gone.topic_id, index]
        for topic in request.topics:
            for each in topic.partitions:
                asked = (each.current_leader_epoch, each.fetch_offset, each.partition_max_bytes)
                self.known[topic.topic, topic.topic_id, each.partition] = asked
        return fetch.FetchResponse(session_id=self.session_id)


wanted_partitions = st.dictionaries(
    st.sampled_from(PLACES), st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=6
)
steps = st.tuples(
    wanted_partitions,
    st.integers(0, 1),
    st.sampled_from(["served", "served", "served", "not sent", "answer lost", "forgotten", "full"]),
)


@pytest.mark.slow
@given(st.lists(steps, max_size=30))
def test_the_broker_reads_exactly_what_is_wanted(
    script: list[tuple[dict[TopicPartition, tuple[int, int]], int, str]],
) -> None:
    session, broker = ClientFetchSession(), BrokerSession()
    for chosen, generation, fate in script:
        ids = {topic: bytes([ord(topic), generation]) + bytes(14) for topic in ("a", "b")}
        wanted = {
            place: FetchPosition(ids[place.topic], epoch, offset, 100) for place, (epoch, offset) in chosen.items()
        }
        plan = session.plan(wanted)
        if fate == "forgotten":
            broker.session_id = 0
        broker.has_room = fate != "full"
        if fate == "not sent":
            session.broken()
            continue
        reply = broker.serve(fetch_call(1, wanted, plan, FetchSettings()).message)
        if fate == "answer lost":
            session.broken()
            continue
        session.answered(plan, reply)
        if reply.error_code:
            assert plan.is_incremental, "a request that names everything is always served"
            plan = session.plan(wanted)
            reply = broker.serve(fetch_call(1, wanted, plan, FetchSettings()).message)
            session.answered(plan, reply)
        assert not reply.error_code
        assert broker.known == {
            (place.topic, asked.topic_id, place.partition): (asked.leader_epoch, asked.offset, asked.bytes_max)
            for place, asked in wanted.items()
        }


def test_only_what_changed_is_named() -> None:
    session, broker = ClientFetchSession(), BrokerSession()
    asked = FetchPosition(bytes(range(16)), 0, 5, 100)

    def exchange(wanted: dict[TopicPartition, FetchPosition]) -> Plan:
        plan = session.plan(wanted)
        call = fetch_call(1, wanted, plan, FetchSettings())
        assert (call.min_version >= 7) == plan.is_incremental
        session.answered(plan, broker.serve(call.message))
        return plan

    both = {PLACES[0]: asked, PLACES[1]: asked}
    assert exchange(both).named == both
    assert exchange(both).named == {}
    moved = asked._replace(offset=6)
    assert exchange({**both, PLACES[1]: moved}).named == {PLACES[1]: moved}
    last = exchange({PLACES[0]: asked})
    assert (last.named, dict(last.forgotten)) == ({}, {PLACES[1]: asked.topic_id})
    by_name = {PLACES[0]: asked._replace(topic_id=NO_TOPIC_ID)}
    assert not exchange(by_name).is_incremental, "topics are all named, or all have ids"


def test_epochs_begin_again_behind_the_largest() -> None:
    session = ClientFetchSession()
    wanted = {PLACES[0]: FetchPosition(bytes(range(16)), 0, 5, 100)}
    session.answered(session.plan(wanted), fetch.FetchResponse(session_id=3))
    session._epoch = EPOCH_MAX
    plan = session.plan(wanted)
    session.answered(plan, fetch.FetchResponse(session_id=3))
    assert session.plan(wanted).epoch == 1


class SessionWorld(World):
    """The leader of the consumer's tests, with a session."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.session = BrokerSession()
        self.requests: list[fetch.FetchRequest] = []

    def _fetch(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        self.requests.append(request)
        reply = self.session.serve(request)
        if reply.error_code:
            return reply
        wanted: dict[str, list[fetch.FetchRequestPartition]] = {}
        for (topic, _topic_id, index), (epoch, offset, bytes_max) in self.session.known.items():
            wanted.setdefault(topic, []).append(
                fetch.FetchRequestPartition(
                    partition=index, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=bytes_max
                )
            )
        topics = tuple(
            fetch.FetchRequestTopic(topic=topic, topic_id=self.topic_id, partitions=tuple(each))
            for topic, each in wanted.items()
        )
        found = super()._fetch(fetch.FetchRequest(topics=topics))
        told = tuple(each for topic in found.responses for each in topic.partitions if each.records or each.error_code)
        answer = fetch.FetchResponseTopic(topic_id=self.topic_id, partitions=told)
        return fetch.FetchResponse(session_id=self.session.session_id, responses=(answer,))


def test_a_consumer_reads_through_a_session_that_is_lost_now_and_then() -> None:
    world = SessionWorld(partitions=3)
    read: list[bytes] = []
    for number in range(12):
        world.logs[number % 3].append(batch(number // 3, b"%d" % number))
        if number == 7:
            world.session.session_id = 0
        read += [record.value for record in world.read(steps=2)]
    assert sorted(map(int, read)) == list(range(12))
    assert [record for record in read if int(record) % 3 == 1] == [b"1", b"4", b"7", b"10"]
    full = [request for request in world.requests if request.session_epoch == 0]
    assert len(full) == 2
    assert len(world.requests) > 10
    assert isinstance(world.core, ConsumerCore)
    world.core.pause([T0])
    world.step()
    assert {index for _topic, _topic_id, index in world.session.known} == {1, 2}

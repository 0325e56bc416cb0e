"""Legal requests of several clients that do not wait for one another, with every limit smaller than what is asked for.

Most tests send a request and wait for its answer. Here the next step begins before the last one has settled: requests
are pipelined, helpers are late, connections close and topics go in between. In the end every connection that is still
open has all of its answers, and nothing is left of the others.
"""

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.wire.apis import ApiKey
from headrace.wire.messages import delete_records, delete_topics, describe_log_dirs
from tests.broker.test_offsets import LATEST, MAX_TIMESTAMP, T, list_request, timed
from tests.broker.virtual import LONG_MS, VirtualBroker

PARTITIONS = 5
CLIENTS = 3
SMALL_LIMITS = {
    "headrace.broker.partitions.reader.FETCH_PARTITIONS_PER_SLICE": 2,
    "headrace.broker.api.fetch.FETCH_PARTITIONS_PER_SLICE": 2,
    "headrace.broker.api.fetch_response.FETCH_PARTITIONS_PER_SLICE": 2,
    "headrace.broker.api.list_offsets.LOOKUPS_PER_REQUEST_MAX": 4,
    "headrace.broker.lookups.LOOKUPS_PER_CONNECTION_MAX": 6,
    "headrace.broker.lookups.LOOKUPS_MAX": 10,
    "headrace.broker.lookups.LOOKUPS_SHARE_MIN": 2,
    "headrace.broker.lookups.LOOKUPS_AT_ONCE_MAX": 1,
    "headrace.broker.lookups.LOOKUPS_GIVEN_UP_PER_TURN_MAX": 1,
    "headrace.broker.net.connection.REQUESTS_IN_FLIGHT_MAX": 4,
    "headrace.broker.net.receiver.REQUESTS_IN_FLIGHT_MAX": 4,
}
HELPERS = ("TimeSearch", "DataSync", "open_logs", "_space", "sync_metadata")
"""Work that may be late, by parts of the names of its operations."""


REQUESTS = ("produce", "fetch", "look up", "newest", "latest", "room", "delete records", "delete topic")
KINDS = (*REQUESTS, "hold", "release", "leave", "time")


class Step(NamedTuple):
    kind: str
    client: int
    partition: int
    bytes: int
    turns: int


STEPS = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from(KINDS),
        client=st.integers(0, CLIENTS - 1),
        partition=st.integers(0, PARTITIONS - 1),
        bytes=st.sampled_from([0, 1, 50, 400, 3_000]),
        turns=st.integers(0, 4),
    ),
    min_size=1,
    max_size=25,
)


def records_deleted(partition):
    asked = delete_records.DeleteRecordsRequestPartition(partition_index=partition, offset=-1)
    topics = (delete_records.DeleteRecordsRequestTopic(name="t", partitions=(asked,)),)
    return delete_records.DeleteRecordsRequest(topics=topics, timeout_ms=500)


def topic_deleted():
    topics = (delete_topics.DeleteTopicsRequestTopic(name="t"),)
    return delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=500)


class Run:
    def __init__(self):
        # Time is advanced while frames are on their way: none of these clients is slow for that.
        self.broker = VirtualBroker(settings={"headrace.slow.client.timeout.ms": str(1 << 30)})
        self.broker.with_topic("t", partitions=PARTITIONS, segment_bytes=1024, flush_messages=1)
        self.clients = [self.broker.client() for _ in range(CLIENTS)]
        self.asked: list[list[Any]] = [[] for _ in range(CLIENTS)]

    def take(self, step):
        if step.kind == "leave":
            self.clients[step.client].close()
            self.clients[step.client], self.asked[step.client] = self.broker.client(), []
        elif step.kind == "hold":
            self.broker.machine.spawner.hold(name_contains=HELPERS[step.partition % len(HELPERS)])
        elif step.kind == "release":
            self.broker.machine.spawner.release()
        elif step.kind == "time":
            self.broker.world.time.advance(LONG_MS + 1)
        else:
            client = self.clients[step.client]
            self.asked[step.client].append(self.send(client, step))
        self.broker.steps(step.turns)

    def send(self, client, step):
        if step.kind == "produce":
            return client.send_produce("t", step.partition, timed(client, T, T + step.bytes), timeout_ms=500)
        if step.kind == "fetch":
            wanted = [("t", partition, 0) for partition in range(PARTITIONS)]
            limits = {"bytes_max": step.bytes, "partition_bytes": step.bytes // 2}
            return client.send_fetch(*wanted, wait_ms=5_000, bytes_min=step.bytes * step.partition, **limits)
        if step.kind == "room":
            return client.send(ApiKey.DESCRIBE_LOG_DIRS, 4, describe_log_dirs.DescribeLogDirsRequest(topics=None))
        if step.kind == "delete records":
            return client.send(ApiKey.DELETE_RECORDS, 2, records_deleted(step.partition))
        if step.kind == "delete topic":
            return client.send(ApiKey.DELETE_TOPICS, 6, topic_deleted())
        time = {"look up": T + step.bytes, "newest": MAX_TIMESTAMP, "latest": LATEST}[step.kind]
        request = list_request(*[("t", partition, time) for partition in range(PARTITIONS)])
        return client.send(ApiKey.LIST_OFFSETS, 7, request)

    def check(self):
        """Every wait has a limit, so that time alone answers everything."""
        broker = self.broker
        broker.machine.spawner.release()
        for _ in range(4):
            broker.pass_time(LONG_MS + 1)
        for client, asked in zip(self.clients, self.asked, strict=True):
            assert [each for each in asked if not client.has_answer(each)] == []
        metrics, node = broker.metrics, broker.node
        assert (metrics.parked_fetches, metrics.parked_requests, len(node.broker.lookups)) == (0, 0, 0)
        assert node.broker.lookups._running == 0
        assert metrics.handler_failures == 0
        for client in self.clients:
            client.close()
        broker.run_until(lambda: len(node.loop.connections) == 0)


@pytest.fixture(scope="module", autouse=True)
def small_limits():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL_LIMITS.items():
            patch.setattr(name, value)
        yield


@settings(max_examples=40)
@given(steps=STEPS)
def test_every_request_is_answered_and_nothing_is_left_behind(steps):
    run = Run()
    for step in steps:
        run.take(step)
    run.check()

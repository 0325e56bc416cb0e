"""DeleteRecords ends when no replica in sync has the records any more: the next leader would have them again."""

import pytest

from headrace.core.replication.follower import Follower
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsRequestTopic,
)
from tests.peers.nodes import CLIENT_PORT
from tests.peers.test_listener import Caller
from tests.replication.trios import LAG_MS, TOPIC, Trio

LEADER, FOLLOWER = 2, 3
VERSION = 2


@pytest.fixture
def trio():
    trio = Trio()
    for value in (b"a", b"b", b"c"):
        end = trio.append(value)
    trio.run_until(lambda: all(trio.role(number).high_watermark == end for number in trio.nodes))
    return trio


def deleted(trio, offset, *, timeout_ms=30_000):
    client = Caller(trio.peers, trio.nodes[LEADER], port=CLIENT_PORT)
    topic = DeleteRecordsRequestTopic(
        name=TOPIC, partitions=(DeleteRecordsRequestPartition(partition_index=0, offset=offset),)
    )
    response = client.ask(ApiKey.DELETE_RECORDS, VERSION, DeleteRecordsRequest(topics=(topic,), timeout_ms=timeout_ms))
    return response.topics[0].partitions[0]


@pytest.mark.parametrize("offset", [2, -1])
def test_every_replica_has_deleted_them_when_the_response_comes(trio, offset):
    result = deleted(trio, offset)
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 3 if offset < 0 else offset)
    assert [trio.replica(number).log.start_offset for number in trio.nodes] == [result.low_watermark] * 3


def test_a_follower_that_does_not_answer_is_waited_for_until_the_timeout(trio):
    trio.role(FOLLOWER).is_truncating = True  # it takes nothing from its leader meanwhile
    result = deleted(trio, 2, timeout_ms=LAG_MS // 2)
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert trio.replica(FOLLOWER).log.start_offset == 0


def test_a_follower_that_leaves_the_in_sync_set_is_not_waited_for(trio):
    trio.role(FOLLOWER).is_truncating = True
    trio.append(b"d")
    assert deleted(trio, 2, timeout_ms=30 * LAG_MS).error_code == ErrorCode.NONE
    assert FOLLOWER not in trio.role(LEADER).isr


def test_a_follower_joins_the_in_sync_set_when_it_has_deleted_them(trio, monkeypatch):
    trio.peers.cut(trio.nodes[LEADER], trio.nodes[FOLLOWER])
    end = trio.append(b"d")
    trio.run_until(lambda: FOLLOWER not in trio.role(LEADER).isr or trio.peers.pass_time(100))
    assert deleted(trio, 2).error_code == ErrorCode.NONE
    fetched = Follower.fetched
    monkeypatch.setattr(
        Follower, "fetched", lambda role, **_: fetched(role, leader_high_watermark=0, leader_log_start=0)
    )
    trio.peers.heal()
    trio.run_until(lambda: trio.replica(FOLLOWER).log.end_offset == end)
    trio.peers.pass_time(LAG_MS)
    assert FOLLOWER not in trio.role(LEADER).isr, "it would show the records as a leader"
    monkeypatch.undo()
    trio.append(b"e")  # the follower says again what it has, and learns of the start
    trio.run_until(lambda: FOLLOWER in trio.role(LEADER).isr)
    assert trio.replica(FOLLOWER).log.start_offset == 2


def test_the_starts_of_followers_survive_a_kill_of_all_brokers(trio):
    assert deleted(trio, 2).error_code == ErrorCode.NONE
    trio.peers.pass_time(2_000)
    for node in trio.nodes.values():
        node.machine.kill()
    for node in trio.nodes.values():
        node.boot()
    trio.run_until(lambda: all(each.node.ready for each in trio.nodes.values()) and all(map(trio.has, trio.nodes)))
    assert [trio.replica(number).log.start_offset for number in trio.nodes] == [2, 2, 2]

"""Consumers that name their rack are sent to a replica there, and read from it what is committed (KIP-392)."""

import pytest

from headrace.model.errors import ErrorCode as E
from headrace.wire.apis import ApiKey
from headrace.wire.messages import fetch
from tests.broker.virtual import fetch_request, values_of
from tests.replication.requests import send, wait
from tests.replication.trios import TOPIC, Trio

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LONG_MS = 20_000


@pytest.fixture
def trio():
    """Broker 2 leads; two records are committed everywhere."""
    trio = Trio(has_racks=True, settings={"replica.selector.class": RACK_AWARE})
    trio.append(b"a")
    trio.append(b"b")
    trio.run_until(lambda: all(trio.role(number).high_watermark == 2 for number in trio.nodes))
    return trio


def begin(trio, number, offset, rack, *, version=12, **options):
    request = with_rack(fetch_request([(TOPIC, 0, offset)], **options), rack)
    return send(trio, number, ApiKey.FETCH, version, request)


def with_rack(request, rack):
    fields = {name: getattr(request, name) for name in request.__slots__}
    return fetch.FetchRequest(**fields | {"rack_id": rack})


def end(trio, connection):
    response = wait(trio, connection)
    assert response.error_code == 0
    return response.responses[0].partitions[0]


def read(trio, number, offset=0, rack="rack3", **options):
    return end(trio, begin(trio, number, offset, rack, **options))


@pytest.mark.parametrize("version", [11, 12])
def test_the_leader_names_the_replica_in_the_rack_of_the_consumer(trio, version):
    sent = read(trio, 2, version=version)
    assert (sent.error_code, sent.preferred_read_replica, sent.records) == (0, 3, b"")
    assert sent.high_watermark == 2
    answer = read(trio, 3, version=version)
    assert values_of(answer.records, 0) == [b"a", b"b"]
    assert answer.preferred_read_replica == -1


@pytest.mark.parametrize("rack", ["rack2", "rack9", ""])
def test_the_leader_serves_its_own_rack_and_those_without_a_replica(trio, rack):
    answer = read(trio, 2, rack=rack)
    assert values_of(answer.records, 0) == [b"a", b"b"]
    assert answer.preferred_read_replica == -1


def test_a_consumer_without_a_rack_reads_from_the_leader_alone(trio):
    assert read(trio, 3, rack="").error_code == E.NOT_LEADER_OR_FOLLOWER


def test_replicas_that_are_not_in_sync_or_have_less_are_not_named(trio):
    trio.peers.cut(trio.nodes[2], trio.nodes[3])
    trio.append(b"c")
    trio.run_until(lambda: trio.replica(1).log.end_offset == 3)
    assert read(trio, 2, 2).preferred_read_replica == 3
    assert read(trio, 2, 3).preferred_read_replica == -1
    trio.peers.pass_time(3000)
    trio.run_until(lambda: set(trio.role(2).isr) == {1, 2})
    assert values_of(read(trio, 2, 2).records, 2) == [b"c"]


def test_a_follower_gives_nothing_above_its_own_high_watermark(trio):
    trio.peers.cut(trio.nodes[1], trio.nodes[2])  # nothing more is committed
    trio.append(b"c")
    trio.run_until(lambda: trio.replica(3).log.end_offset == 3)
    answer = read(trio, 3, 2)
    assert (answer.error_code, answer.records, answer.high_watermark) == (0, b"", 2)
    assert read(trio, 3, 4).error_code == E.OFFSET_OUT_OF_RANGE


def test_a_fetch_waits_at_a_follower_until_records_are_committed(trio):
    waiting = begin(trio, 3, 2, "rack3", wait_ms=LONG_MS)
    trio.peers.steps()
    assert not waiting.poll()
    began_ms = trio.peers.world.time.now_ms
    trio.append(b"c")
    assert values_of(end(trio, waiting).records, 2) == [b"c"]
    assert trio.peers.world.time.now_ms - began_ms < LONG_MS


def test_a_fetch_that_waits_at_a_follower_learns_of_another_leader(trio):
    waiting = begin(trio, 3, 2, "rack3", wait_ms=LONG_MS)
    trio.peers.steps()
    trio.nodes[2].machine.kill()
    assert end(trio, waiting).error_code == E.NOT_LEADER_OR_FOLLOWER


def test_without_the_selector_every_consumer_reads_from_the_leader():
    trio = Trio(has_racks=True)
    trio.append(b"a")
    trio.run_until(lambda: all(trio.role(number).high_watermark == 1 for number in trio.nodes))
    assert read(trio, 2).preferred_read_replica == -1
    assert read(trio, 3).error_code == E.NOT_LEADER_OR_FOLLOWER

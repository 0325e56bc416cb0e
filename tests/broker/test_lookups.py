"""Offsets by time: how many may wait, whose turn it is, and what becomes of those that are not wanted any more."""

import pytest

from headrace.broker import lookups
from headrace.broker.api import list_offsets as list_offsets_api
from headrace.log.times import SearchCancelled
from headrace.model.errors import ErrorCode
from headrace.model.limits import LANE_STUCK_MS, LOOKUP_MS_MAX, REQUESTS_IN_FLIGHT_MAX
from headrace.ports.spawner import Lane
from headrace.wire.apis import ApiKey
from tests.broker.test_offsets import LATEST, T, list_request, timed
from tests.broker.virtual import VirtualBroker

E = ErrorCode
PARTITIONS = 6
VERSION = 7
SEARCH = "TimeSearch"


@pytest.fixture
def broker():
    broker = VirtualBroker().with_topic("t", partitions=PARTITIONS)
    client = broker.client()
    for partition in range(PARTITIONS):
        client.produce("t", partition, timed(client, T, T + 10))
    return broker


def send(client, *partitions, version=VERSION):
    request = list_request(*[("t", partition, T + 5) for partition in partitions or range(PARTITIONS)])
    return client.send(ApiKey.LIST_OFFSETS, version, request)


def outcomes(response):
    """Of each partition the offset, or the error."""
    return [
        ErrorCode(part.error_code).name if part.error_code else part.offset
        for topic in response.topics
        for part in topic.partitions
    ]


def waiting(broker):
    return len(broker.node.broker.lookups)


def hold(broker):
    broker.machine.spawner.hold(name_contains=SEARCH)


def release(broker):
    broker.machine.spawner.release()


# A new leader


@pytest.mark.parametrize(("version", "refusal"), [(4, "LEADER_NOT_AVAILABLE"), (5, "OFFSET_NOT_AVAILABLE")])
@pytest.mark.parametrize("timestamp", [T + 5, LATEST], ids=["by time", "latest"])
def test_a_leader_that_does_not_know_what_is_committed_has_the_client_ask_again(broker, timestamp, version, refusal):
    role = broker.partition("t").role
    role.epoch_start_offset, role.high_watermark = 2, 1
    request = list_request(("t", 0, timestamp), ("t", 1, timestamp))
    response = broker.client().ask(ApiKey.LIST_OFFSETS, version, request)
    assert outcomes(response) == [refusal, 2 if timestamp == LATEST else 1]


# Limits


@pytest.mark.parametrize(("version", "refusal"), [(4, "LEADER_NOT_AVAILABLE"), (5, "OFFSET_NOT_AVAILABLE")])
def test_above_the_limit_of_a_request_the_rest_is_to_be_asked_for_again(broker, monkeypatch, version, refusal):
    monkeypatch.setattr(list_offsets_api, "LOOKUPS_PER_REQUEST_MAX", 4)
    client = broker.client()
    assert outcomes(client.wait(send(client, version=version))) == [1] * 4 + [refusal] * 2
    assert outcomes(client.wait(send(client, 4, 5, version=version))) == [1, 1]
    assert broker.node.broker.lookups.refused == 2


def test_offsets_that_need_no_lookup_are_not_counted(broker, monkeypatch):
    monkeypatch.setattr(list_offsets_api, "LOOKUPS_PER_REQUEST_MAX", 0)
    client = broker.client()
    request = list_request(*[("t", partition, LATEST) for partition in range(PARTITIONS)])
    assert outcomes(client.ask(ApiKey.LIST_OFFSETS, VERSION, request)) == [2] * PARTITIONS


def test_above_the_limit_of_a_connection_it_is_refused_and_others_are_served(broker, monkeypatch):
    monkeypatch.setattr(lookups, "LOOKUPS_PER_CONNECTION_MAX", 8)
    greedy, other = broker.client(), broker.client()
    hold(broker)
    asked = [send(greedy) for _ in range(3)]
    broker.run_until(lambda: waiting(broker) == 8)
    theirs = send(other, 0)
    broker.run_until(lambda: waiting(broker) == 9)
    release(broker)
    assert outcomes(other.wait(theirs)) == [1]
    refused = ["OFFSET_NOT_AVAILABLE"]
    assert [outcomes(greedy.wait(each)) for each in asked] == [[1] * 6, [1] * 2 + refused * 4, refused * 6]
    assert waiting(broker) == 0


def test_when_all_together_are_too_many_each_connection_has_a_share(broker, monkeypatch):
    monkeypatch.setattr(lookups, "LOOKUPS_MAX", 12)
    monkeypatch.setattr(lookups, "LOOKUPS_SHARE_MIN", 2)
    greedy, modest, late = (broker.client() for _ in range(3))
    hold(broker)
    for _ in range(3):
        send(greedy)
    broker.run_until(lambda: waiting(broker) == 12)
    theirs = send(modest, 0, 1)
    broker.run_until(lambda: waiting(broker) == 14)
    last = send(late)
    broker.run_until(lambda: waiting(broker) == 14 + 12 // 3)
    release(broker)
    assert outcomes(modest.wait(theirs)) == [1, 1]
    assert outcomes(late.wait(last)) == [1] * 4 + ["OFFSET_NOT_AVAILABLE"] * 2


# Turns


def test_connections_take_turns(broker, monkeypatch):
    monkeypatch.setattr(lookups, "LOOKUPS_AT_ONCE_MAX", 1)
    greedy, modest = broker.client(), broker.client()
    hold(broker)
    long = [send(greedy) for _ in range(5)]
    broker.run_until(lambda: waiting(broker) == 30)
    short = send(modest, 0)
    broker.run_until(lambda: waiting(broker) == 31)
    release(broker)
    modest.wait(short)
    assert not greedy.has_answer(long[0]), "thirty lookups were not before it"
    assert [outcomes(greedy.wait(each)) for each in long] == [[1] * 6] * 5


def test_few_are_handed_to_the_helpers_at_once(broker, monkeypatch):
    client = broker.client()
    hold(broker)
    asked = send(client)
    broker.run_until(lambda: waiting(broker) == 6)
    broker.steps()
    assert broker.machine.spawner.waiting_names().count(SEARCH) == lookups.LOOKUPS_AT_ONCE_MAX
    release(broker)
    assert outcomes(client.wait(asked)) == [1] * 6


# Ends


def test_lookups_of_a_closed_connection_are_dropped(broker):
    client = broker.client()
    hold(broker)
    for _ in range(3):
        send(client)
    broker.run_until(lambda: waiting(broker) == 18)
    broker.steps()
    client.close()
    broker.run_until(lambda: waiting(broker) == 0)
    assert broker.metrics.parked_requests == 0
    release(broker)
    broker.steps()
    assert broker.machine.spawner.in_flight() == 0, "what waited was never begun"
    assert broker.metrics.handler_failures == 0
    other = broker.client()
    assert outcomes(other.wait(send(other))) == [1] * 6


def test_a_connection_that_is_not_read_any_more_is_seen_to_close(broker):
    client = broker.client()
    hold(broker)
    for _ in range(REQUESTS_IN_FLIGHT_MAX + 10):
        send(client, 0)
    broker.run_until(lambda: waiting(broker) == REQUESTS_IN_FLIGHT_MAX)
    broker.steps()
    connections, began = len(broker.node.loop.connections), broker.machine.clock.monotonic_ms()
    client.close()
    broker.run_until(lambda: waiting(broker) == 0)
    assert len(broker.node.loop.connections) == connections - 1
    assert broker.machine.clock.monotonic_ms() - began < LOOKUP_MS_MAX


def test_a_node_that_stops_does_not_wait_for_lookups(broker):
    client = broker.client()
    hold(broker)
    asked = send(client)
    broker.run_until(lambda: waiting(broker) == 6)
    node, began = broker.node, broker.machine.clock.monotonic_ms()
    node.begin_stop()
    assert outcomes(client.wait(asked)) == ["OFFSET_NOT_AVAILABLE"] * 6
    broker.run_until(lambda: node.drained)
    assert broker.machine.clock.monotonic_ms() - began < LOOKUP_MS_MAX


def test_a_lookup_that_takes_too_long_is_given_up_and_the_others_continue(broker, monkeypatch):
    monkeypatch.setattr(lookups, "LOOKUPS_AT_ONCE_MAX", 2)
    client = broker.client()
    broker.machine.spawner.lose_next(name_contains=SEARCH)
    asked = send(client)
    broker.run_until(lambda: broker.machine.spawner.lost == 1)
    assert outcomes(client.wait(asked)) == ["OFFSET_NOT_AVAILABLE"] + [1] * 5


def test_lookups_that_wait_for_too_long_are_given_up(broker, monkeypatch):
    monkeypatch.setattr(lookups, "LOOKUPS_AT_ONCE_MAX", 1)
    monkeypatch.setattr(lookups, "LOOKUPS_GIVEN_UP_PER_TURN_MAX", 2)
    client = broker.client()
    hold(broker)
    asked = [send(client) for _ in range(3)]
    broker.run_until(lambda: waiting(broker) == 18)
    broker.steps()
    broker.pass_time(LOOKUP_MS_MAX + 1_000)
    assert [outcomes(client.wait(each)) for each in asked] == [["OFFSET_NOT_AVAILABLE"] * 6] * 3
    release(broker)
    assert outcomes(client.wait(send(client))) == [1] * 6


def test_a_search_that_cannot_be_made_fails_alone(broker, monkeypatch):
    log = broker.partition("t", 2).log
    monkeypatch.setattr(log, "offset_at_time", lambda *_: (_ for _ in ()).throw(OSError("no descriptor")))
    client = broker.client()
    assert outcomes(client.wait(send(client))) == [1, 1, "KAFKA_STORAGE_ERROR", 1, 1, 1]


def test_a_topic_deleted_while_its_lookups_wait(broker):
    client, admin = broker.client(), broker.client()
    hold(broker)
    asked = send(client)
    broker.run_until(lambda: waiting(broker) == 6)
    assert admin.delete_topic("t") == 0
    release(broker)
    assert outcomes(client.wait(asked)) == ["UNKNOWN_TOPIC_OR_PARTITION"] * 6


def test_a_cancelled_search_ends_within_its_batch():
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    client.produce("t", 0, timed(client, *range(T, T + 5_000)))
    log = broker.partition("t").log
    search = log.offset_at_time(T + 4_999, log.end_offset)
    search.cancel()
    with pytest.raises(SearchCancelled):
        search()


# Stuck helpers


def samples(broker, name):
    return {
        dict(labels).get("lane"): value
        for family in broker.node._families()
        if family.name == name
        for labels, value in family.samples
    }


def test_a_lane_that_is_stuck_shows_in_metrics_and_the_log(broker):
    client = broker.client()
    hold(broker)
    send(client)
    broker.run_until(lambda: waiting(broker) == 6)
    broker.steps()
    assert not any(samples(broker, "headrace_helper_stuck").values())
    for _ in range(8):
        broker.pass_time(LANE_STUCK_MS / 6)
    assert samples(broker, "headrace_helper_stuck") == {lane.label: int(lane is Lane.LOOKUP) for lane in Lane}
    assert samples(broker, "headrace_helper_longest_seconds")["lookup"] >= LANE_STUCK_MS / 1000
    assert samples(broker, "headrace_helper_operations")["lookup"] > 0
    assert sum("is stuck" in line for line in broker.log_lines) == 1
    release(broker)
    broker.steps()
    broker.pass_time(10_000)
    assert not any(samples(broker, "headrace_helper_stuck").values())
    assert sum("stuck continues" in line for line in broker.log_lines) == 1

"""Limits on the requests, bytes, time and connections that one client, patient or rude, can hold of the node."""

import errno

import pytest

from headrace.model.errors import ErrorCode
from headrace.model.limits import REQUESTS_IN_FLIGHT_MAX
from headrace.wire.apis import ApiKey
from headrace.wire.messages import api_versions, create_topics, metadata
from tests.broker.virtual import HOST, LONG_MS, TOPIC_RESOURCE, VirtualBroker, new_topic, values_of

SLOW = {"headrace.slow.client.timeout.ms": "20000"}
IDLE = {"connections.max.idle.ms": "30000"}


def connections(broker):
    return len(broker.node.loop.connections)


# Requests


def test_too_many_unanswered_requests_stop_the_reading_and_it_continues():
    broker = VirtualBroker().with_topic("t")
    client, writer = broker.client(), broker.client()
    count = REQUESTS_IN_FLIGHT_MAX + 500
    asked = [client.send_fetch(("t", 0, 0), wait_ms=LONG_MS) for _ in range(count)]
    broker.run_until(lambda: broker.metrics.parked_fetches >= REQUESTS_IN_FLIGHT_MAX)
    broker.steps()
    assert broker.metrics.parked_fetches == REQUESTS_IN_FLIGHT_MAX
    writer.produce("t", 0, writer.batch(b"for all"))
    for correlation in asked:
        assert values_of(client.wait(correlation).responses[0].partitions[0].records) == [b"for all"]
    assert broker.metrics.parked_fetches == 0


def test_a_client_with_many_parked_requests_is_not_called_slow():
    broker = VirtualBroker(settings=SLOW).with_topic("t")
    client, writer = broker.client(), broker.client()
    count = REQUESTS_IN_FLIGHT_MAX + 10
    asked = [client.send_fetch(("t", 0, 0), wait_ms=250_000) for _ in range(count)]
    broker.run_until(lambda: broker.metrics.parked_fetches >= REQUESTS_IN_FLIGHT_MAX)
    for _ in range(5):
        broker.pass_time(10_000)
    assert not client.is_closed()
    writer.produce("t")
    for correlation in asked:
        client.wait(correlation)


def test_answers_come_in_the_order_of_their_requests():
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    parked = client.send_fetch(("t", 0, 0), wait_ms=5_000)
    others = [client.send(ApiKey.API_VERSIONS, 0, api_versions.ApiVersionsRequest()) for _ in range(5)]
    create = client.send(ApiKey.METADATA, 4, metadata.MetadataRequest(topics=None))
    produced = client.send_produce("t")
    for correlation in (parked, *others, create, produced):
        client.wait(correlation)  # the client checks the order


def test_answered_requests_are_not_kept_until_their_deadline():
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    before = len(broker.node._timers)
    for _ in range(300):
        assert client.alter_configs(TOPIC_RESOURCE, "t", {"retention.ms": 1_000_000}) == 0
    assert len(broker.node._timers) < before + 150


def test_a_change_that_is_not_committed_in_time_gets_that_error_once():
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    broker.machine.spawner.hold(name_contains="sync_metadata")
    request = create_topics.CreateTopicsRequest(topics=(new_topic("late"),), timeout_ms=2_000)
    asked = client.send(ApiKey.CREATE_TOPICS, 7, request)
    broker.pass_time(1_000)
    assert not client.has_answer(asked)
    broker.pass_time(2_000)
    assert client.wait(asked).topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    broker.machine.spawner.release()
    broker.steps()
    assert client.metadata("late").topics[0].error_code == 0, "it was carried out all the same"
    assert broker.metrics.parked_requests == 0


def test_a_muted_connection_is_read_again_when_its_time_is_over():
    broker = VirtualBroker().with_topic("t")
    client, other = broker.client(), broker.client()
    client.produce("t")
    loop = broker.node.loop
    [connection] = [each for each in loop.connections.all() if each.produce_shapes]
    loop.throttle.mute(connection, 5_000)
    asked = client.send_produce("t")
    broker.steps()
    assert not client.has_answer(asked)
    assert other.produce_error("t") == 0
    broker.pass_time(5_000)
    assert client.wait(asked).responses[0].partition_responses[0].error_code == 0


# Large frames


def test_large_requests_share_the_bytes_there_are():
    broker = VirtualBroker(settings={"queued.max.request.bytes": str(1 << 20)})
    broker.with_topic("t", partitions=6, max_message_bytes=2_000_000)
    clients = [broker.client() for _ in range(6)]
    asked = []
    for partition, client in enumerate(clients):
        client.connection.stall(sending=True)
        content = client.batch(bytes([partition]) * 450_000)
        asked.append(client.send_produce("t", partition, content))
    loop = broker.node.loop
    for client in clients:
        client.connection.stall()
    queued = []

    def all_answered():
        queued.append(len(loop._unread))
        return all(client.has_answer(correlation) for client, correlation in zip(clients, asked, strict=True))

    broker.run_until(all_answered)
    assert max(queued) <= len(clients), "a waiting frame is queued once"
    for partition, client in enumerate(clients):
        assert client.read_all("t", partition) == [bytes([partition]) * 450_000]
    assert loop.receiver._pool.lent_bytes == 0


def test_while_frames_starve_the_loop_sleeps():
    broker = VirtualBroker(settings={"queued.max.request.bytes": str(256 << 10)}).with_topic("t")
    holder, starving, other = broker.client(), broker.client(), broker.client()
    holder.send_bytes((200_000).to_bytes(4, "big") + bytes(150_000))
    broker.steps(10)
    content = starving.batch(bytes(300_000))
    asked = starving.send_produce("t", 0, content)
    broker.steps(200)
    loop = broker.node.loop
    assert loop._unread == []
    assert not starving.has_answer(asked)
    assert other.produce_error("t") == 0, "small requests go on"
    holder.connection.reset()
    assert starving.wait(asked).responses[0].partition_responses[0].error_code == 0


def test_a_request_above_the_total_is_served_alone():
    broker = VirtualBroker(settings={"queued.max.request.bytes": str(256 << 10)})
    broker.with_topic("t", max_message_bytes=5_000_000)
    client = broker.client()
    assert client.produce_error("t", 0, client.batch(bytes(3_000_000))) == 0
    assert client.produce_error("t", 0, client.batch(bytes(3_000_000))) == 0
    assert broker.node.loop.receiver._pool.lent_bytes == 0


def test_an_oversize_request_closes_its_connection_only():
    broker = VirtualBroker(settings={"socket.request.max.bytes": "100000"}).with_topic("t")
    rude, other = broker.client(), broker.client()
    rude.send_bytes((100_001).to_bytes(4, "big") + bytes(100))
    rude.wait_closed()
    assert broker.metrics.protocol_errors == 1
    assert other.produce_error("t") == 0


# Time


@pytest.mark.parametrize("begun", [b"\0", (50).to_bytes(4, "big") + b"12345", (500_000).to_bytes(4, "big") + bytes(99)])
def test_a_frame_that_does_not_come_to_its_end_is_given_up(begun):
    broker = VirtualBroker(settings=SLOW).with_topic("t")
    slow, other = broker.client(), broker.client()
    slow.send_bytes(begun)
    broker.pass_time(15_000)
    assert not slow.is_closed()
    slow.send_bytes(b"\0")
    broker.pass_time(10_000)
    slow.wait_closed()
    assert broker.metrics.connections_timed_out == 1
    assert broker.node.loop.receiver._pool.lent_bytes == 0
    assert other.produce_error("t") == 0


def test_a_client_that_does_not_read_its_answers_is_given_up_and_bounded_till_then():
    broker = VirtualBroker(settings=SLOW).with_topic("t")
    rude, writer = broker.client(), broker.client()
    writer.produce("t", 0, writer.batch(bytes(900_000)))
    rude.connection.stall(receiving=True)
    for _ in range(2000):
        rude.send_fetch(("t", 0, 0))
    broker.steps(200)
    [connection] = [each for each in broker.node.loop.connections.all() if each.unsent]
    held = [part for part in connection.unsent if isinstance(part, bytes | bytearray | memoryview)]
    assert sum(map(len, held)) < 1 << 20, "what is owed stays in the files"
    assert broker.metrics.requests[ApiKey.FETCH] <= REQUESTS_IN_FLIGHT_MAX + 1
    for _ in range(3):
        broker.pass_time(10_000)
    assert connection.closed
    assert broker.metrics.connections_timed_out == 1
    assert len(list(broker.node.loop.connections.files_in_use())) == 0
    assert writer.produce_error("t", 0, writer.batch()) == 0


def test_connections_that_are_being_sent_what_is_truncated_are_closed():
    broker = VirtualBroker(settings=SLOW).with_topic("t").with_topic("u")
    sent_to, kept, spared, writer = (broker.client() for _ in range(4))
    for topic in ("t", "u"):
        writer.produce(topic, 0, writer.batch(bytes(900_000)))
        writer.produce(topic, 0, writer.batch(bytes(900_000)))
    for client, topic, offset in ((sent_to, "t", 1), (kept, "t", 0), (spared, "u", 1)):
        client.connection.stall(receiving=True)
        for _ in range(4):
            client.send_fetch((topic, 0, offset))
    broker.steps(50)
    log = broker.node.broker.partitions.by_name[b"t"].replicas[0].log
    cut = log.truncation.cut_files(1)
    assert len(cut) == 1
    broker.node.loop.close_senders(dict.fromkeys(cut, 1 << 40))
    assert len(broker.node.loop.connections) == 4
    broker.node.loop.close_senders(cut)
    for client in (sent_to, kept, spared):
        client.connection.stall()
    sent_to.wait_closed()
    broker.steps(20)
    assert not kept.is_closed(), "what it is being sent is below the cut"
    assert not spared.is_closed()
    assert writer.produce_error("u", 0, writer.batch()) == 0


def test_a_client_that_reads_slowly_but_reads_is_kept():
    broker = VirtualBroker(settings=SLOW).with_topic("t")
    reader, writer = broker.client(), broker.client()
    writer.produce("t", 0, writer.batch(bytes(900_000)))
    asked = reader.send_fetch(("t", 0, 0))
    for _ in range(6):
        broker.steps(3)
        reader.connection.stall(receiving=True)
        broker.pass_time(8_000)
        reader.connection.stall()
        reader.connection.receive()
    assert len(reader.wait(asked).responses[0].partitions[0].records) > 900_000


def test_memory_of_large_answers_to_a_client_that_does_not_read_is_bounded():
    settings = {**SLOW, "headrace.connection.inflight.bytes.max": "100000"}
    broker = VirtualBroker(settings=settings).with_topic("t", partitions=300).with_topic("parks")
    rude, other = broker.client(), broker.client()
    rude.connection.stall(receiving=True)
    rude.send_fetch(("parks", 0, 0), wait_ms=200_000)
    request = metadata.MetadataRequest(topics=None)
    for _ in range(500):
        rude.send(ApiKey.METADATA, 12, request)
    broker.steps(200)
    size = len(other.metadata("t").topics[0].partitions) * 20
    assert broker.metrics.requests[ApiKey.METADATA] < 100_000 // size + 20
    assert other.produce_error("t") == 0


def test_a_silent_connection_is_closed_and_one_that_waits_is_not():
    broker = VirtualBroker(settings=IDLE).with_topic("t")
    silent, waiting, active = broker.client(), broker.client(), broker.client()
    broker.steps()
    asked = waiting.send_fetch(("t", 0, 0), wait_ms=100_000)
    for _ in range(5):
        broker.pass_time(8_000)
        assert active.fetch("t").error_code == 0
    assert silent.is_closed()
    assert not waiting.is_closed()
    active.produce("t")
    waiting.wait(asked)
    assert broker.metrics.connections_timed_out == 1


# Ends


@pytest.mark.parametrize("end", ["finish", "close", "reset"])
@pytest.mark.parametrize("begun", [b"", b"\0\0", (500_000).to_bytes(4, "big") + bytes(200_000)])
def test_a_connection_that_ends_anywhere_leaves_nothing(end, begun):
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    client.produce("t")
    if begun:
        client.send_bytes(begun)
    broker.steps()
    assert connections(broker) == 1
    getattr(client.connection, end)()
    broker.steps()
    assert connections(broker) == 0
    assert broker.node.loop.receiver._pool.lent_bytes == 0
    assert broker.metrics.handler_failures == 0


def test_requests_before_the_end_of_the_stream_are_carried_out():
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    for value in (b"a", b"b"):
        client.send_produce("t", 0, client.batch(value))
    client.connection.finish()
    broker.steps()
    assert broker.client().read_all("t") == [b"a", b"b"]


def test_limits_on_connections():
    broker = VirtualBroker(settings={"max.connections": "3"})
    clients = [broker.client() for _ in range(5)]
    broker.steps()
    assert [client.is_closed() for client in clients].count(True) == 2
    assert broker.metrics.connections_refused == 2
    clients[0].close()
    broker.steps()
    assert broker.client().metadata().brokers[0].host == HOST


def test_limits_on_connections_of_one_address():
    broker = VirtualBroker(settings={"max.connections.per.ip": "2"})
    clients = [broker.client() for _ in range(4)]
    broker.steps()
    assert [client.is_closed() for client in clients].count(True) == 2
    for client in clients:
        client.close()
    broker.steps()
    assert broker.node.loop.clients.by_host == {}


def test_no_descriptors_left_is_waited_out():
    broker = VirtualBroker().with_topic("t")
    working = broker.client()
    assert working.produce_error("t") == 0
    broker.machine.network.fail_accepts(errno.EMFILE, times=3)
    late = broker.client()
    asked = late.send_produce("t")
    assert working.produce_error("t") == 0
    for _ in range(5):
        broker.pass_time(100)
    assert late.wait(asked).responses[0].partition_responses[0].error_code == 0


def test_no_descriptors_left_for_the_metrics_page_harms_no_client():
    settings = {"headrace.metrics.listen": f"{HOST}:9404"}
    broker = VirtualBroker(settings=settings).with_topic("t")
    client = broker.client()
    assert client.produce_error("t") == 0
    broker.machine.network.fail_accepts(errno.EMFILE)
    scrape = broker.world.connect(HOST, 9404)
    scrape.send(b"GET /metrics HTTP/1.1\r\n\r\n")
    broker.steps()
    assert client.produce_error("t") == 0
    for _ in range(5):
        broker.pass_time(100)
    assert b"200 OK" in scrape.receive()


# Stopping


def test_a_stop_answers_waiting_clients_and_accepts_no_new_ones():
    broker = VirtualBroker().with_topic("t")
    waiting = broker.client()
    asked = waiting.send_fetch(("t", 0, 0), wait_ms=LONG_MS)
    broker.steps()
    node = broker.node
    node.begin_stop()
    with pytest.raises(ConnectionRefusedError):
        broker.client()
    broker.run_until(lambda: node.drained)
    answer = waiting.wait(asked).responses[0].partitions[0]
    assert (answer.error_code, answer.records or b"") == (ErrorCode.NONE, b"")
    node.close()
    assert waiting.is_closed()


def test_a_stop_while_records_are_being_synced_answers_the_producer():
    broker = VirtualBroker().with_topic("t", flush_messages=1)
    broker.hold_syncs()
    client = broker.client()
    asked = client.send_produce("t")
    broker.steps()
    node = broker.node
    node.begin_stop()
    broker.steps()
    assert not node.drained
    broker.release_syncs()
    broker.run_until(lambda: node.drained)
    assert client.wait(asked).responses[0].partition_responses[0].error_code == 0
    node.close()
    broker.machine.stopped()
    broker.boot()
    assert broker.client().read_all("t") == [b"v"]


class SlowClock:
    """Every look at it takes half a millisecond."""

    def __init__(self, clock):
        self._clock = clock
        self._looks = 0

    def monotonic_ms(self):
        self._looks += 1
        return self._clock.monotonic_ms() + self._looks / 2

    def wall_ms(self):
        return self._clock.wall_ms()


def time_is_up(broker, monkeypatch):
    """Let every turn have time for one request of a connection only."""
    monkeypatch.setattr(broker.node.loop.receiver, "_monotonic_ms", lambda: float("inf"))


def test_pipelined_requests_leave_time_for_others_in_every_turn(monkeypatch):
    broker = VirtualBroker()
    busy, other = broker.client(), broker.client()
    broker.steps()
    time_is_up(broker, monkeypatch)
    asked = [busy.send(ApiKey.API_VERSIONS, 0, api_versions.ApiVersionsRequest()) for _ in range(20)]
    broker.steps(2)
    number = other.send(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=[]))
    other.wait(number)
    assert not busy.has_answer(asked[-1])
    busy.wait(asked[-1])
    assert broker.metrics.requests[ApiKey.API_VERSIONS] == 20


def test_pipelined_requests_before_the_end_of_the_stream_are_carried_out_in_later_turns(monkeypatch):
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    time_is_up(broker, monkeypatch)
    values = [b"%d" % number for number in range(10)]
    for value in values:
        client.send_produce("t", 0, client.batch(value), acks=0)
    client.connection.finish()
    broker.run_until(lambda: connections(broker) == 0)
    assert broker.client().read_all("t") == values


def test_a_turn_with_too_many_ready_connections_leaves_some_to_the_next(monkeypatch):
    broker = VirtualBroker()
    clients = [broker.client() for _ in range(60)]
    broker.steps()
    monkeypatch.setattr(broker.node.loop, "_clock", SlowClock(broker.machine.clock))
    asked = [client.send(ApiKey.API_VERSIONS, 0, api_versions.ApiVersionsRequest()) for client in clients]
    clients[7].connection.close()
    requests, per_turn = broker.metrics.requests, []
    while any(
        not client.has_answer(number) for client, number in zip(clients, asked, strict=True) if client != clients[7]
    ):
        before = requests[ApiKey.API_VERSIONS]
        broker.steps(1)
        per_turn.append(requests[ApiKey.API_VERSIONS] - before)
        assert len(per_turn) < 200
    assert max(per_turn) < 40, "as many as the turn has time for"
    broker.steps()
    assert connections(broker) == 59

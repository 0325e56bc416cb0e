"""The metrics page: just enough HTTP, and never in the way of clients."""

import pytest

from headrace.broker.net.scrape import REQUEST_BYTES_MAX, SCRAPE_MS_MAX, SCRAPES_AT_ONCE_MAX
from tests.broker.virtual import HOST, VirtualBroker

PAGE_PORT = 9404


@pytest.fixture
def broker():
    return VirtualBroker(settings={"headrace.metrics.listen": f"{HOST}:{PAGE_PORT}"}).with_topic("t", partitions=20)


def page(broker, request=b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"):
    connection = broker.world.connect(HOST, PAGE_PORT)
    connection.send(request)
    broker.run_until(lambda: connection.receive() is not None and connection.is_closed())
    return bytes(connection.receive())


def test_the_page_shows_what_was_counted(broker):
    client = broker.client()
    client.produce("t", 3, client.batch(b"a", b"b"))
    client.fetch("t", 3)
    head, _, text = page(broker).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    lines = text.decode().splitlines()
    assert 'headrace_requests_total{api="produce"} 1' in lines
    assert 'headrace_requests_total{api="fetch"} 1' in lines
    assert 'headrace_log_end_offset{topic="t",partition="3"} 2' in lines
    assert "headrace_partitions 20" in lines
    assert "headrace_partitions_led 20" in lines
    assert text.endswith(b"\n")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", b"200"),
    ],
)
def test_other_requests(broker, request_bytes, status):
    assert page(broker, request_bytes).startswith(b"HTTP/1.1 " + status)


def test_a_request_in_pieces(broker):
    connection = broker.world.connect(HOST, PAGE_PORT)
    for byte in b"GET /metrics HTTP/1.1\r\n\r\n":
        connection.send(bytes([byte]))
        broker.steps(2)
    broker.run_until(lambda: connection.receive() is not None and connection.is_closed())
    assert connection.receive().startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("sent", [b"", b"GET /metrics", b"\xff" * (REQUEST_BYTES_MAX + 10), bytes(100)])
def test_requests_without_an_end_are_ended(broker, sent):
    connection = broker.world.connect(HOST, PAGE_PORT)
    if sent:
        connection.send(sent)
    broker.steps()
    broker.pass_time(SCRAPE_MS_MAX + 1)
    assert connection.is_closed()
    assert broker.client().produce_error("t") == 0


def test_scrapers_beyond_the_limit_are_turned_away_and_clients_are_not(broker):
    waiting = [broker.world.connect(HOST, PAGE_PORT) for _ in range(SCRAPES_AT_ONCE_MAX + 4)]
    broker.steps(100)
    assert sum(connection.is_closed() for connection in waiting) == 4
    assert broker.client().produce_error("t") == 0
    for connection in waiting:
        connection.reset()
    broker.steps()
    assert page(broker).startswith(b"HTTP/1.1 200")


def test_a_scraper_that_does_not_read_is_ended_and_a_reset_one_forgotten(broker):
    silent, rude = (broker.world.connect(HOST, PAGE_PORT) for _ in range(2))
    silent.stall(receiving=True)
    for connection in (silent, rude):
        connection.send(b"GET /metrics HTTP/1.1\r\n\r\n")
    broker.steps(2)
    rude.reset()
    broker.steps()
    broker.pass_time(SCRAPE_MS_MAX + 1)
    assert broker.node._scrapes._scrapes == {}

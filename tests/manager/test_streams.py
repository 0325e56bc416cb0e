"""Server-Sent Events: live records, resumption, filters, slow and vanished clients, and the end of the manager."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from headrace.client.types import ConsumerRecord
from headrace.manager.feeds import FeedBuffer
from headrace.manager.limits import STREAM_BUFFER_BYTES_MAX, STREAM_BUFFER_RECORDS_MAX
from headrace.manager.record_views import record_view
from headrace.manager.responses import as_json
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess

Event = dict[str, str]


@contextmanager
def streamed(manager: ManagerProcess, topic: str, **request: object) -> Iterator[Iterator[Event]]:
    """The events of a stream that has begun."""
    with httpx.stream("GET", f"{manager.url}/v1/topics/{topic}/stream", timeout=60, **request) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        yield events(lines)


def events(lines: Iterator[str]) -> Iterator[Event]:
    event: Event = {}
    for line in lines:
        if line.startswith(":"):
            continue
        name, _, text = line.partition(": ")
        if line:
            event[name] = text
        elif event:
            yield event
            event = {}


def values(found: Iterator[Event], count: int) -> list[object]:
    return [json.loads(next(found)["data"])["value"] for _ in range(count)]


def produce(manager: ManagerProcess, topic: str, *texts: object, partition: int = 0) -> None:
    records = [{"value": text, "partition": partition} for text in texts]
    manager.call("POST", f"/v1/topics/{topic}/records", json={"records": records})


@pytest.mark.process
def test_a_stream_brings_records_as_they_come(manager: ManagerProcess, topic: str) -> None:
    produce(manager, topic, "before")
    with streamed(manager, topic) as found:
        produce(manager, topic, "a", partition=0)
        assert values(found, 1) == ["a"]
        produce(manager, topic, "b", partition=2)
        assert values(found, 1) == ["b"]


@pytest.mark.process
@pytest.mark.record_integrity
def test_a_stream_is_resumed_without_loss_or_repetition(manager: ManagerProcess, topic: str) -> None:
    """Each connection takes one event of many that came together, then connects again with its id."""
    for partition in range(3):
        produce(manager, topic, *(f"{partition}-{number}" for number in range(10)), partition=partition)
    found: list[object] = []
    headers: dict[str, str] = {}
    for _ in range(30):
        with streamed(manager, topic, params={"from": "earliest"}, headers=headers) as stream:
            event = next(stream)
        headers = {"last-event-id": event["id"]}
        found.append(json.loads(event["data"])["value"])
    assert sorted(map(str, found)) == sorted(f"{part}-{number}" for part in range(3) for number in range(10))


@pytest.mark.process
@pytest.mark.record_integrity
def test_the_past_and_the_present_join(manager: ManagerProcess, topic: str) -> None:
    produce(manager, topic, *map(str, range(700)))
    with streamed(manager, topic, params={"from": "earliest", "partition": 0}) as found:
        produce(manager, topic, *map(str, range(700, 1_400)))
        assert values(found, 1_400) == [str(number) for number in range(1_400)]


@pytest.mark.process
@pytest.mark.record_integrity
def test_a_slow_client_misses_nothing(manager: ManagerProcess, topic: str) -> None:
    """More than the buffers of the stream and of the sockets hold waits in the broker."""
    text = "x" * 10_000
    with streamed(manager, topic, params={"partition": 0}) as found:
        for start in range(0, 2_000, 100):
            produce(manager, topic, *(f"{number}{text}" for number in range(start, start + 100)))
        received = values(found, 2_000)
    assert [str(each).rstrip("x") for each in received] == [str(number) for number in range(2_000)]


@pytest.mark.process
def test_a_filter_chooses_events(manager: ManagerProcess, topic: str) -> None:
    with streamed(manager, topic, params={"filter": "value.n >= 2", "as": "json"}) as found:
        produce(manager, topic, *({"n": number} for number in range(4)))
        assert values(found, 2) == [{"n": 2}, {"n": 3}]


@pytest.mark.process
@pytest.mark.parametrize(
    ("parameters", "headers", "status", "detail"),
    [
        ({"partition": 5}, {}, 404, "it has 3"),
        ({"positions": "0:99"}, {}, 400, "has no offset 99"),
        ({"filter": "value >"}, {}, 400, "the filter ends"),
        ({}, {"last-event-id": "x"}, 400, "last-event-id"),
        ({"from": "now"}, {}, 400, "from"),
    ],
)
def test_a_stream_that_is_not_possible_says_why(
    manager: ManagerProcess,
    topic: str,
    parameters: dict[str, object],
    headers: dict[str, str],
    status: int,
    detail: str,
) -> None:
    path = f"/v1/topics/{topic}/stream"
    assert detail in manager.call("GET", path, params=parameters, headers=headers, status=status)["detail"]
    manager.call("GET", "/v1/topics/missing/stream", status=404)


@pytest.mark.process
def test_a_vanished_client_leaves_nothing_behind(manager: ManagerProcess, topic: str) -> None:
    host, port = manager.url.removeprefix("http://").split(":")
    for _ in range(20):
        with socket.create_connection((host, int(port)), 20) as connection:
            connection.sendall(f"GET /v1/topics/{topic}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert connection.recv(1_000).startswith(b"HTTP/1.1 200")
    for _ in range(1_000):
        page = manager.http.get("/metrics").text
        if "\nheadrace_manager_requests_in_progress 1\n" in page:
            assert "failed" not in manager.log()
            return
    raise AssertionError("streams without clients are still open")


@pytest.mark.process
def test_streams_end_when_the_manager_stops(broker: EmbeddedBroker, topic: str) -> None:
    with ManagerProcess(broker.bootstrap_servers) as manager, streamed(manager, topic) as found:
        manager.process.terminate()
        assert list(found) == []
        assert manager.stop() == 0


def test_a_buffer_stops_at_its_limits() -> None:
    small: ConsumerRecord = ConsumerRecord("t", 0, 0, 0, None, b"x", ())
    buffer = FeedBuffer()
    for _ in range(STREAM_BUFFER_RECORDS_MAX + 1):
        assert not buffer.has_overflowed
        buffer.offer(small)
    assert buffer.has_overflowed
    large = small._replace(value=bytes(STREAM_BUFFER_BYTES_MAX))
    other = FeedBuffer()
    other.offer(large)
    assert not other.has_overflowed
    other.offer(small)
    assert other.has_overflowed


def test_embedded_json_stays_on_one_line() -> None:
    record: ConsumerRecord = ConsumerRecord("t", 0, 0, 0, b'"a"', b'{\n  "a": [\r\n 1]\n}', ())
    line = as_json(record_view("json")(record))
    assert b"\n" not in line
    assert json.loads(line)["value"] == {"a": [1]}

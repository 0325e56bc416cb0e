"""Measure the manager: HTTP requests that produce, streams, memory, a list of many topics, changes, and a takeover.

    python -m tools.manager_figures [--requests 9600] [--readers 500] [--topics 10000] [--keys 10000]

Broker, manager and load share the machine. The load writes prepared requests to sockets, so that it costs little.
It also runs against `tools.plain_gateway`, a short program without the manager's promises.
"""

import argparse
import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from websockets.asyncio.client import connect

from headrace.client import Admin
from headrace.client.types import LATEST, NewTopic
from headrace.http import ManagerClient
from headrace.model.ids import TopicPartition
from headrace.ports.real.processes import stop
from headrace.testing import EmbeddedBroker

VALUE_BYTES = 100
RECORDS_PER_BATCH = 500
CONNECTIONS = {"one by one": 32, "with keys": 32, "in batches": 8}
STREAM_SECONDS = 15
MESSAGES_PER_SECOND = 20
LISTS = 40
TOPICS_PER_REQUEST = 500
STOP_SECONDS_MAX = 30
OPEN_FILES = 8_192
KEY = b"KEY-OF-THE-REQUEST"
CHANGES = 20
LOOK_SECONDS = 0.05
USED_PATHS = ("/", "/reference", "/v1/openapi.json", "/v1/topics/figures/records", "/v1/groups", "/v1/connections",
              "/v1/access/users", "/v1/audit", "/v1/history/topics/figures")  # fmt: skip
"""Every part of the manager that loads code or memory of its own."""


@contextmanager
def manager(bootstrap: str, *options: str) -> Iterator[tuple[str, int, int]]:
    """Run a manager with a catalog of its own; yield its host, port and process id."""
    command = [sys.executable, "-m", "headrace", "manager", "--listen", "127.0.0.1:0", "--bootstrap", bootstrap]
    with tempfile.TemporaryDirectory() as folder:
        catalog = ("--catalog", f"sqlite:///{folder}/catalog.db")
        with running([*command, "--no-access-log", *catalog, *options]) as found:
            yield found


@contextmanager
def running(command: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Run a server that prints its address; yield its host, port and process id."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        host, port = process.stdout.readline().strip().rpartition("//")[2].split(":")
        yield host, int(port), process.pid
    finally:
        stop(process, STOP_SECONDS_MAX)


def resident_kb(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def request(path: str, body: object, *headers: str) -> bytes:
    content = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""]).encode() + content


async def answered(reader: asyncio.StreamReader) -> bytes:
    """Return the body of a response, which must be a success."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 20"), head
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return await reader.readexactly(length)


async def send(
    host: str, port: int, payload: bytes, *, requests: int, connections: int, numbers: Iterator[int]
) -> float:
    """Send a request again and again over some connections; return the seconds."""

    async def connection() -> None:
        reader, writer = await asyncio.open_connection(host, port)
        for _ in range(requests // connections):
            writer.write(payload.replace(KEY, b"%018d" % next(numbers)))
            await answered(reader)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(connection() for _ in range(connections)))
    return time.perf_counter() - began


async def produce(host: str, port: int, requests: int, *, name: str = "manager", has_keys: bool = True) -> None:
    path, value = "/v1/topics/figures/records", "x" * VALUE_BYTES
    many = request(path, {"records": [{"value": value}] * RECORDS_PER_BATCH})
    kinds = {
        "one by one": (request(path, {"value": value}), 1, requests),
        "with keys": (request(path, {"value": value}, f"Idempotency-Key: {KEY.decode()}"), 1, requests),
        "in batches": (many, RECORDS_PER_BATCH, requests // 6),
    }
    if not has_keys:
        del kinds["with keys"]
    numbers = count(time.time_ns() % 10**15)
    for kind, (payload, records, total) in kinds.items():
        connections = CONNECTIONS[kind]
        await send(host, port, payload, requests=connections * 4, connections=connections, numbers=numbers)
        seconds = await send(host, port, payload, requests=total, connections=connections, numbers=numbers)
        print(f"{name}: records of {VALUE_BYTES} bytes {kind}: {total * records / seconds:,.0f}/s", flush=True)


async def stream(host: str, port: int, process_id: int, readers: int) -> None:
    delays: list[float] = []

    async def read() -> None:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /v1/topics/figures/stream?as=json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        ready.release()
        try:
            while True:
                line = await reader.readline()
                if line.startswith(b"data: "):
                    delays.append(time.time() - json.loads(line[6:])["value"]["sent"])
        finally:
            writer.close()

    ready = asyncio.Semaphore(0)
    before = resident_kb(process_id)
    tasks = []
    for _ in range(readers):
        tasks.append(asyncio.create_task(read()))
        await ready.acquire()
    print(f"memory of a stream: {(resident_kb(process_id) - before) / readers:.0f} kB")
    reader, writer = await asyncio.open_connection(host, port)
    began, messages = time.time(), MESSAGES_PER_SECOND * STREAM_SECONDS
    for number in range(messages):
        await asyncio.sleep(max(0.0, began + number / MESSAGES_PER_SECOND - time.time()))
        writer.write(request("/v1/topics/figures/records", {"value": {"sent": time.time(), "pad": "x" * VALUE_BYTES}}))
        await answered(reader)
    await asyncio.sleep(1)
    writer.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    delays.sort()
    p50, p99 = (delays[int(len(delays) * share)] * 1000 for share in (0.5, 0.99))
    print(f"{MESSAGES_PER_SECOND} messages/s to {readers} readers: {len(delays)} of {messages * readers} arrived, "
          f"p50 {p50:.0f} ms, p99 {p99:.0f} ms; memory {resident_kb(process_id):,} kB", flush=True)  # fmt: skip


async def list_topics(host: str, port: int, process_id: int, topics: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    seconds = []
    for _ in range(LISTS):
        began = time.perf_counter()
        writer.write(b"GET /v1/topics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await answered(reader)
        seconds.append(time.perf_counter() - began)
    writer.close()
    p95 = sorted(seconds)[int(LISTS * 0.95)] * 1000
    print(f"list of {topics:,} topics: p95 {p95:.0f} ms; memory {resident_kb(process_id):,} kB")


async def used_parts(host: str, port: int, process_id: int) -> None:
    """Print the memory of a manager of which a client has used every part."""
    reader, writer = await asyncio.open_connection(host, port)
    for path in USED_PATHS:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await answered(reader)
    writer.write(request("/v1/clients", {"kind": "producer", "name": "figures", "topic": "figures"}))
    await answered(reader)
    writer.write(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"event: begin")
    async with connect(f"ws://{host}:{port}/v1/subscriptions") as socket:
        await socket.send(json.dumps({"type": "subscribe", "id": "a", "topic": "figures", "credit": 1}))
        await socket.recv()
    writer.close()
    print(f"memory with every part used: {resident_kb(process_id):,} kB")


async def notice_changes(host: str, port: int, bootstrap: str) -> None:
    """Print the time from the creation of a topic to the event about it."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET /v1/events?kind=topic HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"event: begin")
    seconds = []
    with Admin(bootstrap) as admin:
        for number in range(CHANGES):
            name = f"noticed-{number}-{time.time_ns()}"
            began = time.perf_counter()
            await asyncio.to_thread(admin.create_topics, [NewTopic(name, 1, 1)])
            await reader.readuntil(name.encode())
            seconds.append(time.perf_counter() - began)
    writer.close()
    print(f"a new topic to its event: p50 {sorted(seconds)[CHANGES // 2] * 1000:.0f} ms, "
          f"slowest {max(seconds) * 1000:.0f} ms", flush=True)  # fmt: skip


async def same_keys(bootstrap: str, keys: int) -> None:
    """Send every key to three managers at the same time, and count the records."""
    with manager(bootstrap) as one, manager(bootstrap) as two, manager(bootstrap) as three:
        began = time.perf_counter()
        answers = await asyncio.gather(*(keyed(host, port, keys) for host, port, _ in (one, two, three)))
        seconds = time.perf_counter() - began
    assert answers[0] == answers[1] == answers[2], "the managers have different results"
    with Admin(bootstrap) as admin:
        places = {TopicPartition("keyed", partition): LATEST for partition in range(4)}
        stored = len({place for places in answers for place in places.values()})
        ends = sum(found.offset for found in admin.offsets(places).values())
    print(f"{keys:,} keys at three managers: {stored:,} records at different positions "
          f"({ends:,} offsets with the ends of transactions), {seconds:.0f} s", flush=True)  # fmt: skip
    assert stored == keys


async def keyed(host: str, port: int, keys: int) -> dict[int, tuple[int, int]]:
    """Return partition and offset by key; a request is repeated until it is answered."""
    found: dict[int, tuple[int, int]] = {}
    numbers = iter(range(keys))

    async def connection() -> None:
        reader, writer = await asyncio.open_connection(host, port)
        for number in numbers:
            while number not in found:
                key = f"Idempotency-Key: figures-{keys}-{number}"
                writer.write(request("/v1/topics/keyed/records", {"value": number}, key))
                status, content = await response(reader)
                if status == 200:
                    (place,) = json.loads(content)["records"]
                    found[number] = place["partition"], place["offset"]
                else:
                    assert status == 503, content
        writer.close()

    await asyncio.gather(*(connection() for _ in range(CONNECTIONS["with keys"])))
    return found


async def response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return int(head.split(b" ")[1]), await reader.readexactly(length)


def take_over(bootstrap: str) -> None:
    """Print the time from the death of the lease's holder to the lease of another manager."""
    with tempfile.TemporaryDirectory() as folder:
        shared = ("--catalog", f"sqlite:///{folder}/shared.db")
        with manager(bootstrap, *shared) as (_, _, holder), manager(bootstrap, *shared) as (host, port, _):
            with ManagerClient(f"http://{host}:{port}") as client:
                assert not holds_lease(client, f"http://{host}:{port}")
                began = time.perf_counter()
                os.kill(holder, signal.SIGKILL)
                while not holds_lease(client, f"http://{host}:{port}"):
                    time.sleep(LOOK_SECONDS)
            print(f"takeover of the lease: {time.perf_counter() - began:.1f} s", flush=True)


def holds_lease(client: ManagerClient, url: str) -> bool:
    return any(each["holds_lease"] and each["url"] == url for each in client.call("GET", "/v1/managers"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=9_600)
    parser.add_argument("--readers", type=int, default=500)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--keys", type=int, default=10_000)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, most), most))
    with EmbeddedBroker(process=True) as broker, manager(broker.bootstrap_servers) as (host, port, process_id):
        print(f"idle memory: {resident_kb(process_id):,} kB")
        broker.create_topic("figures", partitions=4)
        asyncio.run(produce(host, port, options.requests))
        asyncio.run(used_parts(host, port, process_id))
        asyncio.run(stream(host, port, process_id, options.readers))
        with Admin(broker.bootstrap_servers) as admin:
            names = [f"many-{number:05}" for number in range(options.topics)]
            for start in range(0, len(names), TOPICS_PER_REQUEST):
                admin.create_topics([NewTopic(name, 1, 1) for name in names[start : start + TOPICS_PER_REQUEST]])
        asyncio.run(list_topics(host, port, process_id, options.topics))
        asyncio.run(notice_changes(host, port, broker.bootstrap_servers))
    with EmbeddedBroker(process=True) as broker:
        broker.create_topic("figures", partitions=4)
        broker.create_topic("keyed", partitions=4)
        with running([sys.executable, "-m", "tools.plain_gateway", broker.bootstrap_servers]) as (
            host,
            port,
            process_id,
        ):
            print(f"plain program: idle memory: {resident_kb(process_id):,} kB")
            asyncio.run(produce(host, port, options.requests, name="plain program", has_keys=False))
        asyncio.run(same_keys(broker.bootstrap_servers, options.keys))
        take_over(broker.bootstrap_servers)
    return 0


if __name__ == "__main__":
    sys.exit(main())

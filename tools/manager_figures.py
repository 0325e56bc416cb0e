"""Measure the manager: HTTP requests that produce, streams, idle memory and a list of many topics.

    python -m tools.manager_figures [--requests 9600] [--readers 500] [--topics 10000]

Broker, manager and load share the machine. The load writes prepared requests to sockets, so that it costs little.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from headrace.client import Admin
from headrace.client.types import NewTopic
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


@contextmanager
def manager(bootstrap: str) -> Iterator[tuple[str, int, int]]:
    """Run a manager; yield its host, port and process id."""
    command = [sys.executable, "-m", "headrace", "manager", "--listen", "127.0.0.1:0", "--bootstrap", bootstrap]
    process = subprocess.Popen([*command, "--no-access-log"], stdout=subprocess.PIPE, text=True)
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
    assert head.startswith(b"HTTP/1.1 200"), head
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


async def produce(host: str, port: int, requests: int) -> None:
    path, value = "/v1/topics/figures/records", "x" * VALUE_BYTES
    many = request(path, {"records": [{"value": value}] * RECORDS_PER_BATCH})
    kinds = {
        "one by one": (request(path, {"value": value}), 1, requests),
        "with keys": (request(path, {"value": value}, f"Idempotency-Key: {KEY.decode()}"), 1, requests),
        "in batches": (many, RECORDS_PER_BATCH, requests // 6),
    }
    numbers = count(time.time_ns() % 10**15)
    for name, (payload, records, total) in kinds.items():
        connections = CONNECTIONS[name]
        await send(host, port, payload, requests=connections * 4, connections=connections, numbers=numbers)
        seconds = await send(host, port, payload, requests=total, connections=connections, numbers=numbers)
        print(f"records of {VALUE_BYTES} bytes {name}: {total * records / seconds:,.0f}/s", flush=True)


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=9_600)
    parser.add_argument("--readers", type=int, default=500)
    parser.add_argument("--topics", type=int, default=10_000)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, most), most))
    with EmbeddedBroker(process=True) as broker, manager(broker.bootstrap_servers) as (host, port, process_id):
        print(f"idle memory: {resident_kb(process_id):,} kB")
        broker.create_topic("figures", partitions=4)
        asyncio.run(produce(host, port, options.requests))
        asyncio.run(stream(host, port, process_id, options.readers))
        with Admin(broker.bootstrap_servers) as admin:
            names = [f"many-{number:05}" for number in range(options.topics)]
            for start in range(0, len(names), TOPICS_PER_REQUEST):
                admin.create_topics([NewTopic(name, 1, 1) for name in names[start : start + TOPICS_PER_REQUEST]])
        asyncio.run(list_topics(host, port, process_id, options.topics))
    return 0


if __name__ == "__main__":
    sys.exit(main())

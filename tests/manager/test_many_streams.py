"""Two thousand open streams, and clients that take nothing: the manager stays within its limits and serves others."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.manager.limits import STREAMS_MAX
from headrace.manager.server import listen
from headrace.ports.real.disk import raise_open_file_limit
from headrace.testing import EmbeddedBroker
from tests.manager.keyed_load import awaited
from tests.manager.manager_process import ManagerProcess

pytestmark = pytest.mark.process

OPENED_AT_ONCE = 100
SECONDS_MAX = 200
GROWTH_KB_MAX = 250_000
"""The figure of the manager is measured elsewhere; this is the limit of a test on any machine."""


@pytest.fixture(scope="module")
def own_manager(broker: EmbeddedBroker) -> Iterator[ManagerProcess]:
    with ManagerProcess(broker.bootstrap_servers, "--no-access-log") as running:
        yield running


def resident_kb(manager: ManagerProcess) -> int:
    return int(Path(f"/proc/{manager.process.pid}/status").read_text().split("VmRSS:")[1].split()[0])


class ManyStreams:
    """Streams of one topic on connections of their own."""

    def __init__(self, manager: ManagerProcess, topic: str) -> None:
        host, port = manager.url.removeprefix("http://").split(":")
        self._address = (host, int(port))
        self._request = f"GET /v1/topics/{topic}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self._open: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def open(self, count: int) -> None:
        for _ in range(0, count, OPENED_AT_ONCE):
            self._open += await asyncio.gather(*(self.opened(b"200") for _ in range(OPENED_AT_ONCE)))

    async def opened(self, status: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self._address)
        writer.write(self._request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 " + status), head
        return reader, writer

    async def received(self) -> list[str]:
        """Return the value that each stream receives next."""
        return await asyncio.gather(*(self._value(reader) for reader, _ in self._open))

    async def _value(self, reader: asyncio.StreamReader) -> str:
        while not (line := await reader.readline()).startswith(b"data: "):
            assert line, "the stream has ended"
        return str(json.loads(line[6:])["value"])

    async def close(self) -> None:
        for _, writer in self._open:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in self._open), return_exceptions=True)


def test_two_thousand_streams_are_served_and_no_more(own_manager: ManagerProcess, topic: str) -> None:
    raise_open_file_limit()
    before = resident_kb(own_manager)

    async def served() -> None:
        streams = ManyStreams(own_manager, topic)
        try:
            await streams.open(STREAMS_MAX)
            reader, writer = await streams.opened(b"503")
            assert b"use another manager" in await reader.read(2_000)
            writer.close()
            assert resident_kb(own_manager) - before < GROWTH_KB_MAX
            record = {"value": "to everyone", "partition": 0}
            await asyncio.to_thread(own_manager.call, "POST", f"/v1/topics/{topic}/records", json=record)
            assert await streams.received() == ["to everyone"] * STREAMS_MAX
            assert (await asyncio.to_thread(own_manager.call, "GET", "/v1/cluster"))["health"] == "green"
        finally:
            await streams.close()

    async def in_time() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await served()

    asyncio.run(in_time())
    awaited(lambda: in_progress(own_manager) == 1)
    own_manager.call("GET", f"/v1/topics/{topic}")


def in_progress(manager: ManagerProcess) -> int:
    found = re.search(r"^headrace_manager_requests_in_progress (\d+)$", manager.http.get("/metrics").text, re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_a_client_that_takes_nothing_is_disconnected() -> None:
    """With the time that the manager waits, but shorter."""

    async def written_until_the_end() -> int:
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def write(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            size = 0
            try:
                while True:
                    writer.write(bytes(65_536))
                    size += 65_536
                    await writer.drain()
            except OSError:
                ended.set_result(size)

        listener = listen("127.0.0.1", 0, stalled_ms_max=1_000)
        server = await asyncio.start_server(write, sock=listener)
        with socket.create_connection(listener.getsockname()):  # It reads nothing.
            async with asyncio.timeout(SECONDS_MAX):
                size = await ended
        server.close()
        return size

    assert asyncio.run(written_until_the_end()) > 0

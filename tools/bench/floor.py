"""Floors: the cost of the bare system calls of each load, as a lower bound for a broker."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.bench import processes
from headrace.bench.errors import BenchError, RunRejected
from headrace.bench.figures import Round
from headrace.bench.links import host_and_port
from headrace.bench.loads import ProduceLoad
from headrace.bench.produce import produce_round, send
from headrace.bench.replay import ReplayClient
from headrace.bench.requests import produce_frames
from headrace.bench.topics import ProducerIdentity
from tools.bench.floor_server import CHUNK_BYTES
from tools.bench.modules import module_command

BARE = "bare system calls"
START_SECONDS_MAX = 30
GIVEN_BYTES = 2_000_000_000
ANSWER_BYTES_BEHIND_ERROR = 32
SYNC_SIZES = (200, 4_096, 65_536, 1_048_576)


class AppendFloorRounds:
    """Rounds of a produce load on a loop that receives, computes the checksum, writes and responds."""

    def __init__(self, folder: Path, client: ReplayClient, load: ProduceLoad) -> None:
        self._folder = folder
        self._client = client
        self._load = load

    def __call__(self) -> Round:
        load = self._load
        frames = produce_frames(
            "floor",
            [ProducerIdentity(index, 0) for index in range(load.connections)],
            partitions=load.partitions,
            records=load.records,
            record_bytes=load.record_bytes,
            acks=1,
        )
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            path = Path(folder) / "appended"
            numbers = (frames.batch_at, frames.batch_bytes, frames.error_at + ANSWER_BYTES_BEHIND_ERROR)
            with _server(Path(folder), "append", str(path), *map(str, numbers)) as (process, address):
                before = processes.cpu_seconds(process.pid)
                report = send(self._client, address, frames, load)
                cpu = processes.cpu_seconds(process.pid) - before
            if path.stat().st_size != report.requests * frames.batch_bytes:
                raise RunRejected("the bare loop did not write the data that it received")
        return produce_round(report, report.requests * frames.batch_bytes, cpu)


class GiveFloorRounds:
    """Rounds that send a file by sendfile, or a buffer by send, to a reader that discards it; CPU of the sender."""

    def __init__(self, folder: Path, *, by_sendfile: bool, total_bytes: int = GIVEN_BYTES) -> None:
        self._folder = folder
        self._mode = "sendfile" if by_sendfile else "send"
        self._total_bytes = total_bytes

    def __call__(self) -> Round:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            path = Path(folder) / "given"
            _write(path, self._total_bytes if self._mode == "sendfile" else CHUNK_BYTES)
            with _server(Path(folder), self._mode, str(path), str(self._total_bytes)) as (process, address):
                seconds = _swallow(address, self._total_bytes)
                assert process.stdout is not None
                cpu = float(process.stdout.readline())
        gigabytes = self._total_bytes / 1e9
        return {"megabytes_per_second": gigabytes * 1e3 / seconds, "cpu_seconds_per_gigabyte": cpu / gigabytes}


class SyncRounds:
    """Rounds that append to a file and sync it repeatedly, like durable requests one at a time."""

    def __init__(self, folder: Path, *, size: int, seconds: float) -> None:
        self._folder = folder
        self._size = size
        self._seconds = seconds

    def __call__(self) -> Round:
        content = os.urandom(self._size)
        with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
            os.fsync(file.fileno())
            began, count = time.monotonic(), 0
            while time.monotonic() - began < self._seconds:
                file.write(content)
                os.fdatasync(file.fileno())
                count += 1
            return {"per_second": count / (time.monotonic() - began)}


@contextmanager
def _server(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    messages = folder / "messages"
    command = module_command("tools.bench.floor_server", *arguments)
    process = processes.start(command, messages=messages, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        line = processes.first_line(process.stdout, START_SECONDS_MAX)
        if not line.startswith("listening on "):
            raise BenchError(f"the bare loop did not start{processes.last_words(messages)}")
        yield process, line.removeprefix("listening on ")
    finally:
        processes.stop(process)


def _write(path: Path, total_bytes: int) -> None:
    content = os.urandom(CHUNK_BYTES)
    with path.open("wb", buffering=0) as file:
        for position in range(0, total_bytes, CHUNK_BYTES):
            file.write(content[: total_bytes - position])


def _swallow(address: str, total_bytes: int) -> float:
    """Read this many bytes and return the duration in seconds."""
    buffer = memoryview(bytearray(CHUNK_BYTES))
    with socket.create_connection(host_and_port(address)) as peer:
        began, received = time.monotonic(), 0
        while received < total_bytes:
            count = peer.recv_into(buffer)
            if not count:
                raise RunRejected(f"only {received} of {total_bytes} bytes were received")
            received += count
        return time.monotonic() - began

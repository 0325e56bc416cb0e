"""The client of the replay loads: the C program beside this file, or Python processes if there is no compiler.

Both take the same arguments and print the same line of JSON.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path

import msgspec

from headrace.bench import processes
from headrace.bench.errors import BenchError, RunRejected
from headrace.bench.histograms import Histogram, merged, percentile_us
from headrace.bench.links import host_and_port
from headrace.bench.machine import cache_folder
from headrace.bench.requests import FetchFrames, ReplayFrames
from headrace.model.errors import error_name

COMPILERS = ("cc", "gcc", "clang")
COMPILE_SECONDS_MAX = 60
DRAIN_SECONDS_MAX = 60
PYTHON_PROCESSES_MAX = 8

_OWN_ERRORS = {
    -2: "responses arrived in another order than the requests",
    -3: "a response could not be read",
    -4: "a connection did not end cleanly",
    -5: "offsets are missing or came twice",
    -6: "the end of a partition was not reached in time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    requests: int
    seconds: float
    bytes: int
    """Bytes of the responses of an exchange including their sizes, or of the fetched batches."""

    records: int
    client_cpu_seconds: float
    histogram: Histogram

    def p50_us(self) -> float:
        return percentile_us(self.histogram, 0.5)

    def p99_us(self) -> float:
        return percentile_us(self.histogram, 0.99)


class ReplayClient:
    """Runs a load and returns its counts; raises RunRejected if any response was wrong."""

    def __init__(self, folder: Path, *, compiled: bool = True) -> None:
        self._folder = folder
        self._program = compiled_program() if compiled else None
        self._process_count = 1 if self._program else min(os.cpu_count() or 1, PYTHON_PROCESSES_MAX)

    @property
    def description(self) -> str:
        return "C replay" if self._program else f"Python replay, {self._process_count} processes"

    def exchange(
        self,
        bootstrap: str,
        frames: ReplayFrames,
        *,
        depth: int,
        seconds: float,
        requests_max: int = 0,
        answers: bool = True,
        interval_us: int = 0,
    ) -> ReplayReport:
        """Send each connection's frame repeatedly with `depth` requests in flight, until either limit."""
        connections = len(frames.content) // frames.frame_bytes
        arguments: dict[str, int | str] = {
            "frame_bytes": frames.frame_bytes,
            "batch_at": frames.batch_at,
            "batch_bytes": frames.batch_bytes,
            "records": frames.records,
            "error_at": frames.error_at,
            "depth": depth,
            "answers": int(answers),
            "interval_us": interval_us,
        }
        jobs = [
            {**arguments, "first": first, "connections": count, "requests": requests_max * count // connections}
            for first, count in self._shares(connections)
        ]
        return self._run("exchange", bootstrap, frames.content, jobs, seconds)

    def fetch(
        self,
        bootstrap: str,
        frames: FetchFrames,
        ranges: Sequence[tuple[int, int]],
        *,
        seconds: float,
        check: bool = True,
        must_end: bool = True,
    ) -> ReplayReport:
        """Read each connection's range of offsets; with `check`, verify every checksum."""
        arguments: dict[str, int | str] = {
            "frame_bytes": frames.frame_bytes,
            "offset_at": frames.offset_at,
            "check": int(check),
            "must_end": int(must_end),
        }
        texts = [f"{start}:{end}" for start, end in ranges]
        jobs: list[dict[str, int | str]] = [
            {**arguments, "first": first, "connections": count, "ranges": ",".join(texts[first : first + count])}
            for first, count in self._shares(len(ranges))
        ]
        return self._run("fetch", bootstrap, frames.content, jobs, seconds)

    def round_trips(
        self, bootstrap: str, produced: ReplayFrames, fetched: FetchFrames, *, count: int, offset: int, pause_us: int
    ) -> ReplayReport:
        """Park a fetch, produce a record and measure the time until the fetch returns it; `count` times."""
        job: dict[str, int | str] = {
            "frame_bytes": produced.frame_bytes,
            "fetch_bytes": fetched.frame_bytes,
            "batch_at": produced.batch_at,
            "batch_bytes": produced.batch_bytes,
            "error_at": produced.error_at,
            "offset_at": fetched.offset_at,
            "offset": offset,
            "requests": count,
            "pause_us": pause_us,
        }
        return self._run("roundtrip", bootstrap, produced.content + fetched.content, [job], DRAIN_SECONDS_MAX)

    def _shares(self, connections: int) -> list[tuple[int, int]]:
        """Return the first connection and the number of connections of each process."""
        count = min(self._process_count, connections)
        edges = [connections * place // count for place in range(count + 1)]
        return [(start, end - start) for start, end in pairwise(edges)]

    def _run(
        self, mode: str, bootstrap: str, content: bytes, jobs: Sequence[Mapping[str, int | str]], seconds: float
    ) -> ReplayReport:
        host, port = host_and_port(bootstrap)
        messages = self._folder / "replay-messages.txt"
        program = [self._program] if self._program else processes.python_command("-m", "headrace.bench.replay_process")
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix="frames-") as file:
            file.write(content)
            file.flush()
            shared = {"address": host, "port": port, "seconds": seconds, "file": file.name}
            running = [
                processes.start(
                    [*program, mode, *(f"{name}={value}" for name, value in {**shared, **job}.items())],
                    messages=messages,
                    stdout=subprocess.PIPE,
                )
                for job in jobs
            ]
            try:
                outputs = [process.communicate(timeout=seconds + DRAIN_SECONDS_MAX)[0] for process in running]
            except subprocess.TimeoutExpired:
                raise RunRejected("the load did not finish: the broker stopped responding") from None
            finally:
                for process in running:
                    processes.stop(process)
        if any(process.returncode for process in running):
            raise RunRejected(f"the load failed{processes.last_words(messages)}")
        return _combined(outputs)


def compiled_program() -> str | None:
    """Return the path of the C client, built on first use; None without a compiler."""
    compiler = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        return None
    source = resources.files("headrace.bench").joinpath("replay.c").read_bytes()
    program = cache_folder() / f"replay-{hashlib.sha256(source).hexdigest()[:16]}"
    if program.exists():
        return str(program)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        text, built = Path(folder) / "replay.c", Path(folder) / "replay"
        text.write_bytes(source)
        try:
            processes.run(
                [compiler, "-O2", "-o", str(built), str(text)],
                messages=Path(folder) / "messages",
                seconds_max=COMPILE_SECONDS_MAX,
            )
        except BenchError:
            return None  # a compiler without system headers cannot be used
        built.replace(program)
    return str(program)


class _Printed(msgspec.Struct, frozen=True):
    """Parse the line of JSON that a client process prints."""

    requests: int
    errors: int
    first_error: int
    seconds: float
    bytes: int
    records: int
    client_cpu_seconds: float
    histogram: dict[int, int]


def _combined(outputs: Sequence[bytes]) -> ReplayReport:
    printed = [msgspec.json.decode(output, type=_Printed) for output in outputs]
    errors = sum(one.errors for one in printed)
    if errors:
        code = next(one.first_error for one in printed if one.errors)
        raise RunRejected(f"{errors} responses were wrong, the first: {_OWN_ERRORS.get(code) or error_name(code)}")
    return ReplayReport(
        requests=sum(one.requests for one in printed),
        seconds=max(one.seconds for one in printed),
        bytes=sum(one.bytes for one in printed),
        records=sum(one.records for one in printed),
        client_cpu_seconds=sum(one.client_cpu_seconds for one in printed),
        histogram=merged(one.histogram for one in printed),
    )

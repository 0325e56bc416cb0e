"""Processes of the benchmark: start, stop, output, and CPU and memory of process trees."""

import os
import selectors
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from headrace.bench.errors import BenchError
from headrace.bench.machine import cache_folder
from headrace.ports.real.processes import stop as stop_process

STOP_SECONDS_MAX = 30
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SAID_BYTES_MAX = 2_000
"""Bytes of the end of a process's output in an error message."""

_PARENT, _USER_TICKS, _CHILD_SYSTEM_TICKS, _RESIDENT_PAGES = 1, 11, 14, 21


def python_command(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def start(
    command: Sequence[str],
    *,
    messages: Path,
    stdout: int | None = None,
    stdin: int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program; its stderr goes to the file `messages`, and its stdout as well unless `stdout` is given."""
    with messages.open("ab") as file:
        return subprocess.Popen(  # noqa: S603  (programs of this package, or named by the user)
            list(command),
            stdin=stdin,
            stdout=file if stdout is None else stdout,
            stderr=file,
            env={**_environment(), **(environment or {})},
        )


def _environment() -> dict[str, str]:
    """Return this environment without Headrace's configs, with a bytecode cache as an installed package has."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("HEADRACE_")}
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
        environment["PYTHONPYCACHEPREFIX"] = str(cache_folder() / "bytecode")
    return environment


def run(command: Sequence[str], *, messages: Path, seconds_max: float) -> bytes:
    """Run a program and return its stdout; raise BenchError with the end of its output if it fails."""
    with start(command, messages=messages, stdout=subprocess.PIPE) as process:
        try:
            output, _ = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            process.kill()
            raise BenchError(f"{command[0]} did not end within {seconds_max:.0f} s{last_words(messages)}") from None
        except BaseException:
            process.kill()  # leaving the block waits for the process
            raise
    if process.returncode != 0:
        raise BenchError(f"{Path(command[0]).name} failed{last_words(messages)}")
    return output


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a process and close its pipes."""
    stop_process(process, STOP_SECONDS_MAX)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def first_line(stream: IO[bytes], seconds_max: float) -> str:
    """Return the first line that a process prints; empty if it ends or prints nothing in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        ready = selector.select(seconds_max)
    return stream.readline().decode().strip() if ready else ""


def last_words(messages: Path) -> str:
    said = messages.read_bytes()[-SAID_BYTES_MAX:].decode(errors="replace").strip() if messages.exists() else ""
    return f"; it said:\n{said}" if said else ""


def cpu_seconds(process_id: int) -> float:
    """Return user and system time of a process, its threads and its children, including ended ones."""
    ticks = 0
    for fields in _members(process_id).values():
        ticks += sum(map(int, fields[_USER_TICKS : _CHILD_SYSTEM_TICKS + 1]))
    return ticks / CLOCK_TICKS


def children(process_id: int, name: str) -> list[int]:
    """Return the descendants of a process whose program name starts with `name`."""
    return [known for known in _members(process_id) if known != process_id and _name(known).startswith(name)]


def own_bytes(process_ids: Iterable[int]) -> int:
    """Return proportional resident memory: shared pages count in shares, and an ended process counts as 0."""
    total = 0
    for process_id in process_ids:
        try:
            lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def resident_bytes(process_id: int) -> int:
    return sum(int(fields[_RESIDENT_PAGES]) for fields in _members(process_id).values()) * PAGE_BYTES


def _members(process_id: int) -> dict[int, list[str]]:
    """Return a process and its descendants, with the fields of /proc/PID/stat from the state on."""
    found = {known: fields for known in _process_ids() if (fields := _stat(known)) is not None}
    if process_id not in found:
        raise BenchError(f"process {process_id} is gone")
    members = {process_id: found[process_id]}
    grew = True
    while grew:
        grew = False
        for known, fields in found.items():
            if known not in members and int(fields[_PARENT]) in members:
                members[known] = fields
                grew = True
    return members


def _process_ids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _stat(process_id: int) -> list[str] | None:
    try:
        content = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return content.rpartition(")")[2].split()  # the name in parentheses may contain anything


def _name(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""

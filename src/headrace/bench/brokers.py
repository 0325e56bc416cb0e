"""Brokers to measure: processes started here in their own folders, or brokers that already run."""

import atexit
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from headrace.bench import processes
from headrace.bench.errors import BenchError
from headrace.bench.links import BenchConnection, host_and_port
from headrace.bench.topics import LOOK_AGAIN_SECONDS
from headrace.ports.real.held_ports import held_port
from headrace.wire.messages import metadata

START_SECONDS_MAX = 120
PROBE_METADATA_VERSION = 9
CONNECT_SECONDS_MAX = 1.0

HEADRACE = "headrace"
"""The name of a broker of this project."""
PURE_PYTHON = "headrace, pure Python"
"""The name of a broker without compiled helpers."""

SHARED_SETTINGS: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    "log.segment.delete.delay.ms": "1000",
}
"""Configs that all measured brokers share; all others have their defaults."""


class MeasuredBroker:
    """A broker with its address and process. Without a process id its CPU and memory are unknown."""

    def __init__(self, name: str, address: str = "", process_id: int | None = None, folder: Path | None = None) -> None:
        self.name = name
        self.address = address
        self.process_id = process_id
        self.folder = folder
        """Its data folder, if it is on this machine."""

    def cpu_seconds(self) -> float | None:
        return None if self.process_id is None else processes.cpu_seconds(self.process_id)

    def resident_bytes(self) -> int | None:
        return None if self.process_id is None else processes.resident_bytes(self.process_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Do nothing: the benchmark did not start this broker."""


class BrokerProcess(MeasuredBroker):
    """A broker that the benchmark starts, stops, kills and restarts on the same data."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder=folder / "data")
        self.messages = folder / "messages.txt"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> Self:
        """Start the broker and wait for its first Metadata response."""
        self._process = self._spawn()
        self.process_id = self._process.pid
        try:
            self.address = self._find_address(self._process)
            wait_for_metadata(self.address, self._process)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        process, self._process, self.process_id = self._process, None, None
        if process is not None:
            processes.stop(process)

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self.stop()

    def epitaph(self) -> str:
        """Return the exit status and the last output of the process, if it ended by itself."""
        if self._process is None or self._process.poll() is None:
            return ""
        return f"{self.name} ended with status {self._process.returncode}{processes.last_words(self.messages)}"

    def _spawn(self) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def _find_address(self, process: subprocess.Popen[bytes]) -> str:
        raise NotImplementedError


class HeadraceBroker(BrokerProcess):
    program: tuple[str, ...] = ("-m", "headrace")
    options: tuple[str, ...] = ()
    """Further options of `headrace broker`."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None, name: str = HEADRACE) -> None:
        super().__init__(name, folder)
        self._settings = {**SHARED_SETTINGS, **(settings or {})}

    def _spawn(self) -> subprocess.Popen[bytes]:
        settings = [word for name, text in self._settings.items() for word in ("--set", f"{name}={text}")]
        command = processes.python_command(*self.program, "broker", "--listen", "127.0.0.1:0")
        return processes.start(
            [*command, "--data-dir", str(self.folder), *self.options, *settings],
            messages=self.messages,
            stdout=subprocess.PIPE,
        )

    def _find_address(self, process: subprocess.Popen[bytes]) -> str:
        assert process.stdout is not None
        line = processes.first_line(process.stdout, START_SECONDS_MAX)
        match = re.fullmatch(r"headrace listening on (\S+)", line)
        if match is None:
            raise BenchError(f"the broker did not start{processes.last_words(self.messages)}")
        return match[1]


class PurePythonBroker(HeadraceBroker):
    """The same broker as in an installation without a C compiler."""

    # An entry of None makes the import fail, as it does if the helper was not built.
    program = (
        "-c",
        "import runpy, sys; sys.modules['headrace.wire._compiled'] = None; "
        "runpy.run_module('headrace', run_name='__main__', alter_sys=True)",
    )

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, settings, PURE_PYTHON)


def wait_for_metadata(
    address: str, process: subprocess.Popen[bytes] | None = None, *, seconds_max: float = START_SECONDS_MAX
) -> None:
    """Wait until a broker answers a Metadata request; raise BenchError if its process ends first."""
    request = metadata.MetadataRequest(topics=(), allow_auto_topic_creation=False)
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        if process is not None and process.poll() is not None:
            raise BenchError(f"the broker ended with status {process.returncode} while it started")
        if _listens(address):
            try:
                with BenchConnection(address) as link:
                    if link.call(metadata, request, PROBE_METADATA_VERSION).brokers:
                        return
            except BenchError:
                pass  # it listens but does not serve requests yet
        time.sleep(LOOK_AGAIN_SECONDS / 4)
    raise BenchError(f"no broker answers at {address}")


def free_ports(count: int) -> list[int]:
    """Reserve ports for the lifetime of this process; a server that uses one must set SO_REUSEADDR."""
    holders = [held_port() for _ in range(count)]
    for holder in holders:
        atexit.register(holder.close)
    return [holder.getsockname()[1] for holder in holders]


def _listens(address: str) -> bool:
    try:
        socket.create_connection(host_and_port(address), CONNECT_SECONDS_MAX).close()
    except OSError:
        return False
    return True

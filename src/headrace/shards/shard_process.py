"""One shard as a process: its start, the addresses that it prints, and its end."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from headrace.shards.settings import ShardSettings

LISTENING = b"headrace listening on "
OUTPUT_BYTES_MAX = 64 << 10
"""The most bytes of its standard output before it is ready; a broker prints one line per listener."""

RESTART_MS_MIN = 100
RESTART_MS_MAX = 30_000
STEADY_MS = 60_000
"""A shard that has run for this time counts as healthy, so that its next restart is quick again."""


class ShardProcess:
    def __init__(self, settings: ShardSettings, arguments: Sequence[str]) -> None:
        self.settings = settings
        self.addresses: list[str] = []
        """The addresses of its listeners for clients; empty before it is ready."""
        self.restarts = 0
        self.start_at_ms: float | None = 0.0
        """The time of its next start; None while it runs."""
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._output = b""
        self._started_at_ms = 0.0
        self._restart_ms = RESTART_MS_MIN

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def is_ready(self) -> bool:
        return self.is_running and bool(self.addresses)

    @property
    def output(self) -> int:
        """Return the descriptor of its standard output."""
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self, now_ms: float) -> None:
        """Start it in a session of its own, so that Ctrl-C reaches the parent alone."""
        settings = [word for name, text in self.settings.texts.items() for word in ("--set", f"{name}={text}")]
        self._process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
            [sys.executable, "-m", "headrace", "broker", *self._arguments, *settings, "--until-eof"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._output = b""
        self.addresses = []
        self.start_at_ms = None
        self._started_at_ms = now_ms

    def read_output(self) -> bool:
        """Read the addresses that it prints when it is ready; return False at the end of the output."""
        try:
            part = os.read(self.output, OUTPUT_BYTES_MAX)
        except BlockingIOError:
            return True
        if self.addresses or len(self._output) > OUTPUT_BYTES_MAX:
            return bool(part)
        self._output += part
        lines = self._output.split(b"\n")[:-1]  # printed by one write
        self.addresses = [line[len(LISTENING) :].decode() for line in lines if line.startswith(LISTENING)]
        return bool(part)

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    @property
    def exit_status(self) -> int | None:
        """Return the exit status of a process that has ended and is not released yet."""
        return None if self._process is None else self._process.poll()

    def release(self) -> None:
        """Close the pipes of a process that has ended."""
        assert self._process is not None
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process = None

    def restart_later(self, now_ms: float) -> float:
        """Plan the next start and return the wait, which doubles while the shard keeps ending."""
        if now_ms - self._started_at_ms >= STEADY_MS:
            self._restart_ms = RESTART_MS_MIN
        wait_ms = self._restart_ms
        self._restart_ms = min(2 * self._restart_ms, RESTART_MS_MAX)
        self.start_at_ms = now_ms + wait_ms
        self.restarts += 1
        return wait_ms

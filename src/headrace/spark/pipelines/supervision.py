"""Supervise a pipeline run in a separate process, and start it again when Spark dies.

The child runs the driver's Python and Spark's Java. It claims the pipeline under the supervisor's process id and sends
the heartbeats; while no child runs, the supervisor sends them, so that others see one run and can stop it.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import IO, Any, NamedTuple

from headrace.client.errors import ClientError
from headrace.spark.pipelines.claims import Claim
from headrace.spark.pipelines.definition import Restart
from headrace.spark.pipelines.metrics import run_page
from headrace.spark.pipelines.records import RunRecord, RunState
from headrace.spark.pipelines.restarts import RestartBudget
from headrace.spark.pipelines.spark_process import death_text
from headrace.spark.pipelines.status_topic import opened

VARIABLE = "HEADRACE_PIPELINE_SUPERVISED"
"""Passes a child its run and the descriptor of its pipe to the supervisor."""
EXIT_SPARK_DIED = 75
"""Exit code of a child when Spark has died: a retry may help (EX_TEMPFAIL)."""
EXIT_FAILED = 1

OnLine = Callable[[str], None]


class Supervised(NamedTuple):
    """A child's side: its run, and its pipe to the supervisor."""

    record: RunRecord
    line: socket.socket
    restarts: int

    def publish_batch(self, report: Mapping[str, Any]) -> None:
        self._tell({"batch": report})

    def publish_end(self, state: str, message: str) -> None:
        self._tell({"end": {"state": state, "message": message}})

    def _tell(self, message: Mapping[str, Any]) -> None:
        with suppress(OSError):  # the supervisor is gone, and the run ends because of that
            self.line.sendall(json.dumps(message).encode() + b"\n")

    def watch(self, stop: threading.Event) -> None:
        """Stop the run between two batches when the supervisor is gone."""

        def wait() -> None:
            with suppress(OSError):
                while self.line.recv(1):
                    pass
            stop.set()

        threading.Thread(target=wait, name="supervisor", daemon=True).start()

    def die(self, said: str) -> None:
        """End this process at once: Spark's Python side would wait for ever."""
        self._tell({"died": said})
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_SPARK_DIED)


def supervised() -> Supervised | None:
    """Return this process as a child; None if it is not one. Its own processes are not children of the supervisor."""
    told = os.environ.pop(VARIABLE, None)
    if told is None:
        return None
    found = json.loads(told)
    record = RunRecord(**{**found["record"], "state": RunState(found["record"]["state"])})
    return Supervised(record, socket.socket(fileno=found["line"]), found["restarts"])


@dataclass(slots=True, kw_only=True)
class Supervisor:
    command: Sequence[str]
    record: RunRecord
    settings: Mapping[str, Any]
    """Settings of the client that publishes restarts."""
    policy: Restart
    on_output: OnLine
    on_error: OnLine
    on_state: Callable[[str], None]
    _child: "subprocess.Popen[str] | None" = None
    restarts: int = 0
    batch: Mapping[str, Any] | None = None
    """The newest report of a child."""
    end: Mapping[str, str] = field(default_factory=dict)
    """The state in which the newest child ended, and its message."""
    _died: str | None = None
    """The message of a child about its end."""
    _is_told_to_end: threading.Event = field(default_factory=threading.Event)

    def forward(self, number: int) -> None:
        """Forward a signal to the child, which ends in order. Called by signal handlers."""
        self._is_told_to_end.set()
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)

    def run(self) -> tuple[int, str]:
        """Return the exit code, and the error if the child did not report it itself."""
        budget = RestartBudget(self.policy)
        while True:
            status, said = self._attempt()
            if said is None:
                return status, ""
            number = budget.take()
            if number is None or self._is_told_to_end.is_set():
                self._give_up(said)
                return EXIT_FAILED, said
            self.restarts += 1
            self.on_state(budget.text(number, said))
            if self._rest(said):
                return 0, ""

    def _attempt(self) -> tuple[int, str | None]:
        """Run a child to its end; return the reason of its death, None if it ended normally."""
        ours, theirs = socket.socketpair()
        told = {"record": asdict(self.record), "line": theirs.fileno(), "restarts": self.restarts}
        self._died = None
        with ours, theirs:
            child = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
                self.command,
                env={**os.environ, VARIABLE: json.dumps(told), "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
            self._child = child
            theirs.close()
            relays = [
                _relay(child.stdout, self.on_output),
                _relay(child.stderr, self.on_error),
                _relay(ours.makefile("r", encoding="utf-8"), self._hear),
            ]
            status = child.wait()
            for relay in relays:
                relay.join()
        if status == EXIT_SPARK_DIED:
            return status, self._died or "Spark has died"
        return status, death_text(f"the process that drives Spark (pid {child.pid})", status) if status < 0 else None

    def _hear(self, line: str) -> None:
        """Handle a message of the child."""
        message = json.loads(line)
        self._died = message.get("died", self._died)
        self.batch = message.get("batch", self.batch)
        self.end = message.get("end", self.end)

    def page(self) -> str:
        """Render the metrics of the run for Prometheus: alive while a child runs."""
        is_alive = self._child is not None and self._child.poll() is None
        return run_page(self.record, self.batch, is_alive=is_alive)

    def _rest(self, said: str) -> bool:
        """Wait before a restart, sending heartbeats; return whether the run must end instead."""
        end = time.monotonic() + self.policy.backoff_ms / 1000
        record = replace(self.record, state=RunState.STARTING, message=f"restarting after: {said}")
        try:
            with opened(self.settings) as bulletin:
                claim = Claim(bulletin=bulletin, record=record)
                claim.take()
                while time.monotonic() < end and not self._is_told_to_end.is_set():
                    if claim.listen():
                        self._is_told_to_end.set()
                if self._is_told_to_end.is_set():
                    claim.give_up(RunState.STOPPED)
                else:
                    claim.leave()
        except ClientError:
            self._is_told_to_end.wait(max(end - time.monotonic(), 0.0))
        return self._is_told_to_end.is_set()

    def _give_up(self, said: str) -> None:
        with suppress(ClientError), opened(self.settings) as bulletin:
            Claim(bulletin=bulletin, record=self.record).give_up(RunState.FAILED, said)


def _relay(stream: IO[str] | None, on_line: OnLine) -> threading.Thread:
    assert stream is not None

    def relay() -> None:
        with stream:
            for line in stream:
                on_line(line.rstrip("\n"))

    thread = threading.Thread(target=relay, name="relay", daemon=True)
    thread.start()
    return thread

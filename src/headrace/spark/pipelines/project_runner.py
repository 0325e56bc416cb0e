"""Run a project of Spark's declarative pipelines: once, or repeatedly until it is stopped.

Spark runs such a project to the end of the existing records and no further, so "continuous" means run after run. Its
server stays up between them; each run is a separate process, which reads the project's files again. The catalog is kept
in the project's folder: Spark's own catalog forgets its tables, and the next run would find their folders in use.
"""

import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.ports.real.processes import stop
from headrace.spark.pipelines.checkpoints import Checkpoint
from headrace.spark.pipelines.claims import Claim, RunOutcome, new_run, run_claimed
from headrace.spark.pipelines.lag import find_lags, summary
from headrace.spark.pipelines.project_failures import failure_reason
from headrace.spark.pipelines.project_progress import Position, positions, run_report
from headrace.spark.pipelines.projects import TABLES_FOLDER, Project
from headrace.spark.pipelines.records import RunState
from headrace.spark.pipelines.spark_process import java_death, java_of
from headrace.spark.pipelines.topics import client_settings
from headrace.spark.pipelines.totals import no_totals, with_batch
from headrace.spark.session_launcher import LOOPBACK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAUSE_SECONDS = 1.0
"""Pause between two runs of a continuous project."""
STOP_SECONDS_MAX = 30.0
LINES_KEPT_MAX = 2_000
"""Output lines of a run that are kept: errors are at the end."""
REMOTE_PREFIX = "sc://"
SERVER_HOST = "localhost"
"""Spark's client sends its token to a server without TLS only under this host name."""
BOOTSTRAP_VARIABLE = "HEADRACE_BOOTSTRAP"
"""The variable in which the files of a project find the broker."""
_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService$"
_REMOTE_VARIABLE = "SPARK_REMOTE"
_TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105  (the name of a variable)

MakeSession = Callable[[Mapping[str, str]], "SparkSession"]


def server_settings(project: Project) -> dict[str, str]:
    """Return the settings of a server for this machine's own processes, with a persistent catalog."""
    state = project.state.resolve()
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.artifact.isolation.enabled": "true",
        "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str((project.folder / TABLES_FOLDER).resolve()),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={state}/catalog;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={state}",
    }


@dataclass(slots=True, kw_only=True)
class ProjectRunner:
    project: Project
    bootstrap: str
    make_session: MakeSession
    is_once: bool
    remote: str | None = None
    """The address of a running Spark Connect server, which manages its own catalog."""
    full_refresh: bool = False
    """The first run is a full refresh: tables are emptied and everything is read again."""
    on_line: Callable[[str], None] = lambda _line: None
    on_round: Callable[[Mapping[str, Any]], None] = lambda _report: None
    on_state: Callable[[str], None] = lambda _text: None
    stop: threading.Event = field(default_factory=threading.Event)
    """May be set by any thread: the current run is the last."""
    _totals: dict[str, Any] = field(default_factory=no_totals)
    _java: "subprocess.Popen[bytes] | None" = None
    """The server's process, if this process has started it."""

    def run(self) -> RunOutcome:
        settings = client_settings(self.bootstrap)
        with Checkpoint(self.project.state).locked(), Admin(config=settings) as admin:
            return run_claimed(
                admin,
                settings,
                new_run(self.project.name),
                lambda claim: self._work(claim, admin),
                on_outage=self.on_state,
            )

    def _work(self, claim: Claim, admin: Admin) -> RunOutcome:
        self.on_state("starting Spark")
        known = claim.bulletin.ledger.pipelines[self.project.name].last_batch()
        number = 0 if known is None else int(known["batch"]) + 1
        count = 0
        with self._server() as remote:
            claim.begins()
            while True:
                began, before = time.time(), positions(self.project.storage)
                failure = self._round(claim, remote, is_first=not count)
                if failure is not None:
                    died = java_death(self._java, is_suspected="onnect" in failure)
                    return RunOutcome(state=RunState.FAILED, message=died or failure, count=count)
                self._report(claim, admin, number + count, began, before)
                count += 1
                if not self.is_once:
                    self._pause(claim)
                if self.is_once or self.stop.is_set():
                    return RunOutcome(state=RunState.DONE if self.is_once else RunState.STOPPED, count=count)

    def _report(
        self, claim: Claim, admin: Admin, number: int, began: float, before: Mapping[str, Position] | None
    ) -> None:
        seconds, after = time.time() - began, positions(self.project.storage)
        report = run_report(number, began=began, seconds=seconds, before=before, after=after)
        with suppress(ClientError):
            report["lag"] = summary(find_lags(admin, client_settings(self.bootstrap), report["ends"]))
        self._totals = report["totals"] = with_batch(self._totals, report)
        claim.publish_batch(report)
        self.on_round(report)

    @contextmanager
    def _server(self) -> Iterator[str]:
        """Return the address at which this process, and those it starts, reach Spark."""
        if self.remote is not None:
            yield self.remote
            return
        os.environ.setdefault(_TOKEN_VARIABLE, secrets.token_urlsafe())
        session = self.make_session(server_settings(self.project))
        self._java = java_of(session)
        try:
            service: Any = getattr(session.sparkContext._jvm, _SERVICE)
            port = getattr(service, "MODULE$").localPort()  # as Spark's own client finds it
            yield f"{REMOTE_PREFIX}{SERVER_HOST}:{port}"
        finally:
            if java_death(self._java, is_suspected=False) is None:
                session.stop()

    def _round(self, claim: Claim, remote: str, *, is_first: bool) -> str | None:
        """Complete one run; return the reason if it failed."""
        command = [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--spec", str(self.project.file.resolve())]
        if is_first and self.full_refresh:
            command.append("--full-refresh-all")
        environment = {**os.environ, _REMOTE_VARIABLE: remote, BOOTSTRAP_VARIABLE: self.bootstrap}
        lines: list[str] = []
        process = subprocess.Popen(  # noqa: S603  (our own interpreter and Spark's module)
            command,
            cwd=self.project.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        hearing = threading.Thread(target=self._hear, args=(process, lines), daemon=True)
        hearing.start()
        try:
            while process.poll() is None:
                if claim.listen():
                    self.stop.set()
        finally:
            stop(process, STOP_SECONDS_MAX)
            hearing.join()
        return None if process.returncode == 0 else failure_reason(self.project, lines)

    def _hear(self, process: "subprocess.Popen[str]", lines: list[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                del lines[:-LINES_KEPT_MAX]
                self.on_line(lines[-1])

    def _pause(self, claim: Claim) -> None:
        end = time.monotonic() + PAUSE_SECONDS
        while time.monotonic() < end and not self.stop.is_set():
            if claim.listen():
                self.stop.set()

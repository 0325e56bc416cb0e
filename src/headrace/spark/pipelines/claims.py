"""The claim of a run on its pipeline: taken, kept by heartbeats and released, all by records in the status topic."""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.ports.real.processes import is_running
from headrace.spark.pipelines.records import HEARTBEAT_MS, LEASE_MS, RunRecord, RunState, batch_message, run_message
from headrace.spark.pipelines.spark_process import SparkDied
from headrace.spark.pipelines.status_topic import StatusTopic, make_topic, opened

POLL_MS = 100
ANSWER_MS_MAX = 5_000
"""A broker that does not accept a heartbeat within this time counts as unreachable."""
STOPPED_EARLY = "stopped before it started"


class AlreadyRunning(Exception):
    """Another run holds the pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The result of a run."""

    state: RunState
    message: str = ""
    count: int = 0
    """The number of its batches."""
    batches: tuple[Mapping[str, Any], ...] = ()
    """The newest of them."""


def new_run(pipeline: str) -> RunRecord:
    """Create the record of this process as a run of the pipeline, not published yet."""
    return RunRecord(
        pipeline=pipeline,
        run=uuid.uuid4().hex[:12],
        state=RunState.STARTING,
        host=socket.gethostname(),
        process_id=os.getpid(),
        started_ms=round(time.time() * 1000),
    )


@dataclass(slots=True, kw_only=True)
class Claim:
    bulletin: StatusTopic
    record: RunRecord
    on_outage: Callable[[str], None] = lambda _text: None
    """Called in the claim's own thread."""
    is_overtaken: bool = False
    """This run sent no heartbeat for so long that another one has taken the pipeline."""
    _over: threading.Event = field(default_factory=threading.Event)
    _telling: threading.Lock = field(default_factory=threading.Lock)
    """Keeps an older state from being published after a newer one."""
    _keeper: threading.Thread | None = None
    _away_since: float | None = None
    """When the broker was first found not to respond."""

    def take(self) -> None:
        """Claim the pipeline. From here to the end the run sends heartbeats, also while Spark starts or a restart is
        pending.
        """
        self._publish_end_of_dead_run()
        self.bulletin.publish_and_wait(run_message(self.record))
        holder = self.bulletin.catch_up().pipelines[self.record.pipeline].holder
        assert holder is not None
        if holder.run == self.record.run:
            self._keeper = threading.Thread(target=self._give_signs, name="signs-of-life", daemon=True)
            self._keeper.start()
            return
        self.bulletin.publish_and_wait(run_message(replace(self.record, state=RunState.REFUSED)))
        raise AlreadyRunning(
            f'pipeline "{holder.pipeline}" is run by process {holder.process_id} on {holder.host} (run '
            f"{holder.run}): stop it with `headrace pipeline stop`; if that machine is gone, try again in "
            f"{LEASE_MS // 1000} s"
        )

    def _publish_end_of_dead_run(self) -> None:
        """Publish the end of a run of this machine whose process is gone and cannot publish it itself."""
        known = self.bulletin.catch_up().pipelines.get(self.record.pipeline)
        if known is None or known.holder is None or known.holder.host != self.record.host:
            return
        if known.is_alive(round(time.time() * 1000)) and not is_running(known.holder.process_id):
            gone = replace(known.holder, state=RunState.FAILED, message="its process is gone")
            self.bulletin.publish_and_wait(run_message(gone))

    def _give_signs(self) -> None:
        while not self._over.wait(HEARTBEAT_MS / 1000):
            self._note_answer(is_there=self._is_heard())

    def _is_heard(self) -> bool:
        try:
            with self._telling:
                delivery = self.bulletin.publish(run_message(self.record))
            delivery.result(timeout_ms=ANSWER_MS_MAX)
        except ClientError:
            return False
        return True

    def _note_answer(self, *, is_there: bool) -> None:
        """Log once when the broker stops responding and once when it is back."""
        now = time.monotonic()
        if not is_there and self._away_since is None:
            self._away_since = now
            self.on_outage(f"the broker has not responded for {ANSWER_MS_MAX / 1000:g} s; the run waits for it")
        elif is_there and self._away_since is not None:
            away_s = now - self._away_since + ANSWER_MS_MAX / 1000
            self._away_since = None
            self.on_outage(f"the broker responds again, after about {away_s:.0f} s")

    def _tell(self) -> None:
        with suppress(ClientError), self._telling:
            self.bulletin.publish(run_message(self.record))

    def begins(self) -> None:
        """Publish that the run is now working."""
        self.record = replace(self.record, state=RunState.RUNNING)
        self._tell()

    def publish_batch(self, report: Mapping[str, Any]) -> None:
        with suppress(ClientError):
            self.bulletin.publish(batch_message(self.record.pipeline, self.record.run, report))

    def listen(self) -> bool:
        """Wait a moment for records of other runs; return whether this run must end.

        A broker that does not respond stops no run: Spark has its own timeout for it.
        """
        try:
            self.bulletin.follow(POLL_MS)
        except ClientError:
            time.sleep(POLL_MS / 1000)
        known = self.bulletin.ledger.pipelines.get(self.record.pipeline)
        if known is None or known.holder is None:
            return False
        self.is_overtaken = known.holder.run != self.record.run
        return self.is_overtaken or self.record.run in known.stops

    def leave(self) -> None:
        """Stop the heartbeats without publishing an end: another process continues the run."""
        self._over.set()
        if self._keeper is not None:
            self._keeper.join()

    def give_up(self, state: RunState, message: str = "") -> None:
        self.leave()
        self.record = replace(self.record, state=state, message=message)
        with suppress(ClientError):
            self.bulletin.publish_and_wait(run_message(self.record))


def run_claimed(
    admin: Admin,
    settings: Mapping[str, Any],
    record: RunRecord,
    work: Callable[[Claim], RunOutcome],
    *,
    is_supervised: bool = False,
    on_outage: Callable[[str], None] = lambda _text: None,
    hide: Callable[[str], str] = str,
) -> RunOutcome:
    """Do the work of a run while it holds its pipeline, and publish how it ended; a supervisor reports the death of
    Spark. `hide` removes secrets from what is published.
    """
    make_topic(admin)
    with opened(settings) as bulletin:
        claim = Claim(bulletin=bulletin, record=record, on_outage=on_outage)
        claim.take()
        try:
            outcome = work(claim)
        except BaseException as error:
            if is_supervised and isinstance(error, SparkDied):
                claim.leave()
                raise
            is_early = isinstance(error, (KeyboardInterrupt, SystemExit)) and claim.record.state is RunState.STARTING
            claim.give_up(RunState.FAILED, STOPPED_EARLY if is_early else hide(str(error)).partition("\n")[0])
            raise
        claim.give_up(outcome.state, hide(outcome.message))
        return outcome

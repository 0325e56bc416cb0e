"""A run's hold of its pipeline: claimed, kept by signs of life, and given up, all by records that everybody sees."""

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
from headrace.spark.pipelines.records import HEARTBEAT_MS, LEASE_MS, RunRecord, State, batch_message, run_message
from headrace.spark.pipelines.spark_process import SparkDied
from headrace.spark.pipelines.status_topic import Bulletin, make_topic, opened

POLL_MS = 100
ANSWER_MS_MAX = 5_000
"""A broker that takes longer to take a sign of life is away."""
STOPPED_EARLY = "stopped before it started"


class AlreadyRunning(Exception):
    """Another run has the pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    state: State
    message: str = ""
    count: int = 0
    """Of its batches."""
    batches: tuple[Mapping[str, Any], ...] = ()
    """The newest of them."""


def new_run(pipeline: str) -> RunRecord:
    """This process as a run of the pipeline, not told to anybody yet."""
    return RunRecord(
        pipeline=pipeline,
        run=uuid.uuid4().hex[:12],
        state=State.STARTING,
        host=socket.gethostname(),
        process_id=os.getpid(),
        started_ms=round(time.time() * 1000),
    )


@dataclass(slots=True, kw_only=True)
class Claim:
    bulletin: Bulletin
    record: RunRecord
    on_outage: Callable[[str], None] = lambda _text: None
    """Called in a thread of the claim's own."""
    is_overtaken: bool = False
    """This run was silent for so long that another has taken the pipeline."""
    _over: threading.Event = field(default_factory=threading.Event)
    _telling: threading.Lock = field(default_factory=threading.Lock)
    """An older state is not told after a newer one."""
    _keeper: threading.Thread | None = None
    _away_since: float | None = None
    """When the broker was found not to answer."""

    def take(self) -> None:
        """From here to the end the run gives signs of life, also while Spark starts or a restart is awaited."""
        self._bury_dead_holder()
        self.bulletin.tell_now(run_message(self.record))
        holder = self.bulletin.catch_up().pipelines[self.record.pipeline].holder
        assert holder is not None
        if holder.run == self.record.run:
            self._keeper = threading.Thread(target=self._give_signs, name="signs-of-life", daemon=True)
            self._keeper.start()
            return
        self.bulletin.tell_now(run_message(replace(self.record, state=State.REFUSED)))
        raise AlreadyRunning(
            f'pipeline "{holder.pipeline}" is run by process {holder.process_id} on {holder.host} (run {holder.run}): '
            f"stop it with `headrace pipeline stop`; if that machine is gone, try again in {LEASE_MS // 1000} s"
        )

    def _bury_dead_holder(self) -> None:
        """A run of this machine whose process is gone will not tell of its end: it is told for it."""
        known = self.bulletin.catch_up().pipelines.get(self.record.pipeline)
        if known is None or known.holder is None or known.holder.host != self.record.host:
            return
        if known.is_alive(round(time.time() * 1000)) and not is_running(known.holder.process_id):
            gone = replace(known.holder, state=State.FAILED, message="its process is gone")
            self.bulletin.tell_now(run_message(gone))

    def _give_signs(self) -> None:
        while not self._over.wait(HEARTBEAT_MS / 1000):
            self._note_answer(is_there=self._is_heard())

    def _is_heard(self) -> bool:
        try:
            with self._telling:
                delivery = self.bulletin.tell(run_message(self.record))
            delivery.result(timeout_ms=ANSWER_MS_MAX)
        except ClientError:
            return False
        return True

    def _note_answer(self, *, is_there: bool) -> None:
        """Say when the broker goes away and when it is back, once each."""
        now = time.monotonic()
        if not is_there and self._away_since is None:
            self._away_since = now
            self.on_outage(f"the broker has not answered for {ANSWER_MS_MAX / 1000:g} s: the run waits for it")
        elif is_there and self._away_since is not None:
            away_s = now - self._away_since + ANSWER_MS_MAX / 1000
            self._away_since = None
            self.on_outage(f"the broker answers again, after about {away_s:.0f} s")

    def _tell(self) -> None:
        with suppress(ClientError), self._telling:
            self.bulletin.tell(run_message(self.record))

    def begins(self) -> None:
        """It works from now on."""
        self.record = replace(self.record, state=State.RUNNING)
        self._tell()

    def tell_batch(self, report: Mapping[str, Any]) -> None:
        with suppress(ClientError):
            self.bulletin.tell(batch_message(self.record.pipeline, self.record.run, report))

    def listen(self) -> bool:
        """Wait a moment for records of others; whether the run is to end.

        A broker that does not answer stops nobody: Spark has its own patience with it.
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
        """Give no more signs of life from here, and say nothing: another process goes on with the run."""
        self._over.set()
        if self._keeper is not None:
            self._keeper.join()

    def give_up(self, state: State, message: str = "") -> None:
        self.leave()
        self.record = replace(self.record, state=state, message=message)
        with suppress(ClientError):
            self.bulletin.tell_now(run_message(self.record))


def run_claimed(
    admin: Admin,
    settings: Mapping[str, Any],
    record: RunRecord,
    work: Callable[[Claim], Outcome],
    *,
    is_supervised: bool = False,
    on_outage: Callable[[str], None] = lambda _text: None,
) -> Outcome:
    """Do the work of a run while it has its pipeline, and tell how it ended; a supervisor tells the death of Spark."""
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
            is_early = isinstance(error, (KeyboardInterrupt, SystemExit)) and claim.record.state is State.STARTING
            claim.give_up(State.FAILED, STOPPED_EARLY if is_early else str(error).partition("\n")[0])
            raise
        claim.give_up(outcome.state, outcome.message)
        return outcome

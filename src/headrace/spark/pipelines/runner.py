"""One run of a pipeline: it claims the pipeline, starts the query, publishes progress, and ends when stopped or
done.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.spark.pipelines.change_plan import moved_tables, way_out
from headrace.spark.pipelines.checkpoints import Checkpoint, Note
from headrace.spark.pipelines.claims import Claim, RunOutcome, new_run, run_claimed
from headrace.spark.pipelines.compiler import Compiled, compile_pipeline
from headrace.spark.pipelines.definition import Pipeline
from headrace.spark.pipelines.definition_reader import TRIGGER_DEFAULT_MS
from headrace.spark.pipelines.durations import spark_interval
from headrace.spark.pipelines.failpoints import Failpoint, reach
from headrace.spark.pipelines.failures import failure_of, is_stop
from headrace.spark.pipelines.identity import digest, identity_of, incompatibilities
from headrace.spark.pipelines.lag import find_lags, summary
from headrace.spark.pipelines.micro_batch_writer import MicroBatchWriter
from headrace.spark.pipelines.problems import DefinitionError
from headrace.spark.pipelines.progress import batch_report
from headrace.spark.pipelines.records import RunRecord, RunState
from headrace.spark.pipelines.restarts import RestartBudget
from headrace.spark.pipelines.rewind import first_starts
from headrace.spark.pipelines.sessions import own_session
from headrace.spark.pipelines.spark_process import SparkDied, is_lost_connection, java_death, java_of
from headrace.spark.pipelines.topics import client_settings, needs_headers, other_partitions, prepare_topics, stream_of
from headrace.spark.pipelines.totals import no_totals, totals_of_run, with_batch
from headrace.spark.pipelines.user_code import stream_problem
from headrace.spark.versions import check_session, check_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LAG_SECONDS = 1.0
"""Least time between two lookups of the lag."""

BATCHES_REMEMBERED_MAX = 10_000
"""Batches kept of one run; older ones are published and dropped."""
OVERTAKEN = "another run has taken over the pipeline, because this one sent no heartbeat for too long"

OnBatch = Callable[[Mapping[str, Any]], None]


class IncompatibleChange(Exception):
    """The definition no longer matches the checkpoint."""


@dataclass(slots=True, kw_only=True)
class Runner:
    pipeline: Pipeline
    bootstrap: str
    make_session: Callable[[], "SparkSession"]
    is_once: bool
    on_batch: OnBatch = lambda _report: None
    on_state: Callable[[str], None] = lambda _text: None
    stop: threading.Event = field(default_factory=threading.Event)
    """May be set by any thread: the run ends at the next boundary between batches."""
    supervised_as: RunRecord | None = None
    """The run that a supervisor has begun; the supervisor starts this process again when Spark dies."""
    restarts_before: int = 0
    """The number of such restarts."""
    _record: RunRecord = field(init=False)
    """The state when the run was created; the claim has the current one."""
    _batches: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=BATCHES_REMEMBERED_MAX))
    _count: int = 0
    """Number of batches, including dropped ones."""
    _lag_at: float = 0.0
    _budget: RestartBudget = field(init=False)
    _totals: dict[str, Any] = field(default_factory=no_totals)

    def __post_init__(self) -> None:
        self._record = self.supervised_as or new_run(self.pipeline.name)
        self._budget = RestartBudget(self.pipeline.restart)

    @property
    def run_id(self) -> str:
        return self._record.run

    def run(self) -> RunOutcome:
        """Run until the query ends; raises if it cannot begin."""
        with suppress(ImportError):  # starting Spark reports missing packages
            check_version()
        checkpoint = Checkpoint(self.pipeline.checkpoint)
        settings = client_settings(self.bootstrap, self.pipeline)
        with checkpoint.locked(), Admin(config=settings) as admin:
            for topic in prepare_topics(admin, self.pipeline):
                self.on_state(f'made topic "{topic}"')
            for text in other_partitions(admin, self.pipeline):
                self.on_state(text)
            return run_claimed(
                admin,
                settings,
                self._record,
                lambda claim: self._work(checkpoint, claim, admin),
                hide=self.pipeline.secrets.hide,
                is_supervised=self.supervised_as is not None,
                on_outage=self.on_state,
            )

    # The query

    def _work(self, checkpoint: Checkpoint, claim: Claim, admin: Admin) -> RunOutcome:
        reach(Failpoint.CLAIMED)
        self.on_state("starting Spark")
        made = self.make_session()
        check_session(made)
        java = java_of(made)
        try:
            return self._run_queries(own_session(made, self.pipeline), checkpoint, claim, admin)
        except Exception as error:
            # Any Python error after the death of Java is a consequence of that death.
            died = java_death(java, is_suspected=is_lost_connection(error))
            if died is None:
                raise
            self._keep(checkpoint, str(error))
            raise SparkDied(died) from error

    def _run_queries(self, spark: "SparkSession", checkpoint: Checkpoint, claim: Claim, admin: Admin) -> RunOutcome:
        known = claim.bulletin.ledger.pipelines[self.pipeline.name].last_batch()
        self._totals = totals_of_run(known, self.run_id)
        self._totals["restarts"] = max(self._totals["restarts"] + bool(self.restarts_before), self.restarts_before)
        note = self._with_starts(checkpoint, admin)
        compiled = self._compile(spark, checkpoint, note)
        note = self._check_checkpoint(checkpoint, claim, note, compiled)
        while True:
            writer = MicroBatchWriter(
                pipeline=self.pipeline, bootstrap=self.bootstrap, generation=note.generation, stop=self.stop
            )
            query = self._start(compiled, writer, checkpoint.spark_folder(note.generation).as_posix())
            claim.begins()
            self._watch(query, compiled, claim, admin)
            error = query.exception()
            if claim.is_overtaken:
                return self._outcome(RunState.FAILED, OVERTAKEN)
            if error is None or is_stop(str(error)):
                return self._outcome(RunState.STOPPED if self.stop.is_set() else RunState.DONE)
            failure = failure_of(self.pipeline.secrets.hide(str(error)), self.pipeline)
            restart = None if failure.is_final or self.stop.is_set() else self._budget.take()
            if restart is None:
                self._keep(checkpoint, str(error))
                return self._outcome(RunState.FAILED, failure.said)
            self._totals["restarts"] += 1
            self.on_state(self._budget.text(restart, failure.said))
            self._await_restart(claim, self.pipeline.restart.backoff_ms / 1000)

    def _outcome(self, state: RunState, message: str = "") -> RunOutcome:
        return RunOutcome(state=state, message=message, count=self._count, batches=tuple(self._batches))

    def _await_restart(self, claim: Claim, seconds: float) -> None:
        """Wait for the restart, handling stop requests meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.stop.is_set():
            if claim.listen():
                self.stop.set()

    def _with_starts(self, checkpoint: Checkpoint, admin: Admin) -> Note:
        """Determine the starts of a generation once, before its first batch: `latest` would differ each time."""
        note = checkpoint.note()
        if note.starts or checkpoint.has_batches(note.generation):
            return note
        return replace(note, starts=first_starts(admin, self.pipeline))

    def _compile(self, spark: "SparkSession", checkpoint: Checkpoint, note: Note) -> Compiled:
        folder = checkpoint.spark_folder(note.generation).as_posix()
        starts = {name: json.dumps(vector) for name, vector in note.starts.items()}
        read = stream_of(
            spark,
            self.pipeline,
            bootstrap=self.bootstrap,
            starts=starts,
            with_headers=needs_headers(self.pipeline),
            checkpoint=folder,
        )
        return compile_pipeline(spark, self.pipeline, read)

    def _check_checkpoint(self, checkpoint: Checkpoint, claim: Claim, note: Note, compiled: Compiled) -> Note:
        """Refuse a definition that cannot continue from this checkpoint; note the definition and starts that now use
        it.

        Nothing is noted before the definition is known to be valid: a corrected definition may also begin elsewhere.
        """
        identity = identity_of(self.pipeline, is_stateful=bool(compiled.operators))
        if note.identity is not None and checkpoint.has_batches(note.generation):
            reasons = incompatibilities(note.identity, identity)
            if reasons:
                raise IncompatibleChange(
                    f"{self.pipeline.file} no longer matches the checkpoint {checkpoint.folder}: "
                    f"{'; '.join(reasons)}. {way_out(self.pipeline)}"
                )
            self._refuse_moved_tables(checkpoint, note)
        claim.record = replace(claim.record, definition=digest(identity))
        fresh = replace(note, identity=identity, texts=dict(self.pipeline.texts))
        if fresh != checkpoint.note():
            checkpoint.write_note(fresh)
        return fresh

    def _refuse_moved_tables(self, checkpoint: Checkpoint, note: Note) -> None:
        last = checkpoint.batches(note.generation, 1)
        if last and not last[0].is_committed:
            reasons = moved_tables(note.texts, self.pipeline.sinks, last[0].number)
            if reasons:
                raise IncompatibleChange(f"{self.pipeline.file}: {'; '.join(reasons)}")

    def _start(self, compiled: Compiled, writer: MicroBatchWriter, folder: str) -> "StreamingQuery":
        from pyspark.errors import AnalysisException

        stream = compiled.output.writeStream.foreachBatch(writer).outputMode("append")
        stream = stream.option("checkpointLocation", folder).queryName(f"{self.pipeline.name}-{self.run_id}")
        interval_ms = self.pipeline.trigger.interval_ms
        every = spark_interval(TRIGGER_DEFAULT_MS if interval_ms is None else interval_ms)
        stream = stream.trigger(availableNow=True) if self.is_once else stream.trigger(processingTime=every)
        try:
            return stream.start()
        except AnalysisException as error:
            raise DefinitionError([stream_problem(self.pipeline, str(error))]) from None

    def _watch(self, query: "StreamingQuery", compiled: Compiled, claim: Claim, admin: Admin) -> None:
        """Watch the query until it ends: publish its progress and handle stop requests."""
        last_batch = -1
        while True:
            is_active = query.isActive
            for found in _done_since(query, last_batch):
                last_batch = found["batchId"]
                self._report(batch_report(found, compiled.counted), claim, admin)
            if not is_active:
                return
            if claim.listen():
                self.stop.set()
            if self.stop.is_set() and not query.status["isTriggerActive"]:
                query.stop()

    def _report(self, report: dict[str, Any], claim: Claim, admin: Admin) -> None:
        reach(Failpoint.BATCH_DONE)
        now = time.monotonic()
        if now - self._lag_at >= LAG_SECONDS or self.is_once:
            self._lag_at = now
            with suppress(ClientError):
                lags = find_lags(admin, client_settings(self.bootstrap, self.pipeline), report["ends"])
                report["lag"] = summary(lags)
        report["definition"] = claim.record.definition
        self._totals = report["totals"] = with_batch(self._totals, report)
        self._batches.append(report)
        self._count += 1
        self._budget.note_batch()
        claim.publish_batch(report)
        self.on_batch(report)

    def _keep(self, checkpoint: Checkpoint, error: str) -> None:
        """Keep Spark's whole message, for users who need more than one line."""
        with suppress(OSError), checkpoint.log_file.open("a", encoding="utf-8") as log:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            log.write(f"{moment} run {self.run_id} failed:\n{self.pipeline.secrets.hide(error)}\n")


def _done_since(query: "StreamingQuery", batch: int) -> Iterator[dict[str, Any]]:
    """Yield the progress of the batches after this one; triggers that found no records are not batches."""
    newest = query.lastProgress
    if newest is None or newest.batchId <= batch:
        return
    # All progress that Spark remembers is requested only if more than one batch has passed: it is a thousand of them.
    for progress in query.recentProgress if newest.batchId > batch + 1 else [newest]:
        found = json.loads(progress.json)
        if found["batchId"] > batch and "addBatch" in found["durationMs"]:
            yield found

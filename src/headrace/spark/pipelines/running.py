"""One run of a pipeline: it claims the pipeline, starts the query, tells what it does, and ends when asked or done."""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.spark.pipelines.bulletin import Bulletin, make_topic, opened
from headrace.spark.pipelines.checkpoints import Checkpoint, Note
from headrace.spark.pipelines.compiling import Compiled, compile_pipeline
from headrace.spark.pipelines.definition import Pipeline
from headrace.spark.pipelines.durations import spark_interval
from headrace.spark.pipelines.failpoints import Failpoint, reach
from headrace.spark.pipelines.failures import failure_of, is_stop
from headrace.spark.pipelines.identity import digest, identity_of, incompatibilities
from headrace.spark.pipelines.lag import find_lags, summary
from headrace.spark.pipelines.progress import batch_report
from headrace.spark.pipelines.reading import TRIGGER_DEFAULT_MS
from headrace.spark.pipelines.records import HEARTBEAT_MS, LEASE_MS, RunRecord, State, batch_message, run_message
from headrace.spark.pipelines.rewinding import first_starts
from headrace.spark.pipelines.topics import client_settings, needs_headers, prepare_topics, stream_of
from headrace.spark.pipelines.writing import BatchWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_MS = 100
LAG_SECONDS = 1.0
"""How often at most the lag is looked up."""
SESSION_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.streaming.numRecentProgressUpdates": "1000"}

OVERTAKEN = "another run has taken the pipeline over, as nothing was heard of this one"

OnBatch = Callable[[Mapping[str, Any]], None]


class AlreadyRunning(Exception):
    """Another run has the pipeline."""


class IncompatibleChange(Exception):
    """The definition does not fit the checkpoint any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    state: State
    message: str = ""
    batches: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True, kw_only=True)
class Runner:
    pipeline: Pipeline
    bootstrap: str
    make_session: Callable[[], "SparkSession"]
    is_once: bool
    on_batch: OnBatch = lambda _report: None
    on_state: Callable[[str], None] = lambda _text: None
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by anybody: the run ends at the next boundary between batches."""
    _record: RunRecord = field(init=False)
    _batches: list[Mapping[str, Any]] = field(default_factory=list)
    _is_overtaken: bool = False
    """This run was silent for so long that another has taken the pipeline."""
    _heartbeat_at: float = 0.0
    _lag_at: float = 0.0

    def __post_init__(self) -> None:
        self._record = RunRecord(
            pipeline=self.pipeline.name,
            run=uuid.uuid4().hex[:12],
            state=State.STARTING,
            host=socket.gethostname(),
            process_id=os.getpid(),
            started_ms=round(time.time() * 1000),
        )

    @property
    def run_id(self) -> str:
        return self._record.run

    def run(self) -> Outcome:
        """Returns when the query has ended; raises where it could not begin."""
        checkpoint = Checkpoint(self.pipeline.checkpoint)
        settings = client_settings(self.bootstrap, self.pipeline)
        with checkpoint.locked(), Admin(config=settings) as admin:
            for topic in prepare_topics(admin, self.pipeline):
                self.on_state(f'made topic "{topic}"')
            make_topic(admin)
            with opened(settings) as bulletin:
                self._claim(bulletin)
                reach(Failpoint.CLAIMED)
                try:
                    outcome = self._work(checkpoint, bulletin, admin)
                except BaseException as error:
                    self._tell_end(bulletin, State.FAILED, str(error).partition("\n")[0])
                    raise
                self._tell_end(bulletin, outcome.state, outcome.message)
                return outcome

    # The claim

    def _claim(self, bulletin: Bulletin) -> None:
        self._bury_dead_holder(bulletin)
        bulletin.tell_now(run_message(self._record))
        holder = bulletin.catch_up().pipelines[self.pipeline.name].holder
        assert holder is not None
        if holder.run == self.run_id:
            return
        bulletin.tell_now(run_message(replace(self._record, state=State.REFUSED)))
        raise AlreadyRunning(
            f'pipeline "{holder.pipeline}" is run by process {holder.process_id} on {holder.host} (run {holder.run}): '
            f"stop it with `headrace pipeline stop`; if that machine is gone, try again in {LEASE_MS // 1000} s"
        )

    def _bury_dead_holder(self, bulletin: Bulletin) -> None:
        """A run of this machine whose process is gone will not tell of its end: it is told for it."""
        known = bulletin.catch_up().pipelines.get(self.pipeline.name)
        if known is None or known.holder is None or known.holder.host != self._record.host:
            return
        if known.is_alive(round(time.time() * 1000)) and not _is_process(known.holder.process_id):
            gone = replace(known.holder, state=State.FAILED, message="its process is gone")
            bulletin.tell_now(run_message(gone))

    def _tell_end(self, bulletin: Bulletin, state: State, message: str) -> None:
        self._record = replace(self._record, state=state, message=message)
        with suppress(ClientError):
            bulletin.tell_now(run_message(self._record))

    # The query

    def _work(self, checkpoint: Checkpoint, bulletin: Bulletin, admin: Admin) -> Outcome:
        self.on_state("starting Spark")
        spark = self.make_session().newSession()
        for name, value in {**SESSION_SETTINGS, **_runtime_settings(self.pipeline)}.items():
            spark.conf.set(name, value)
        note = self._settle_starts(checkpoint, admin)
        compiled = self._compile(spark, checkpoint, note)
        note = self._settle_identity(checkpoint, note, compiled)
        restarts = 0
        while True:
            writer = BatchWriter(
                pipeline=self.pipeline, bootstrap=self.bootstrap, generation=note.generation, stop=self.stop
            )
            query = self._start(compiled, writer, checkpoint.spark_folder(note.generation).as_posix())
            self._record = replace(self._record, state=State.RUNNING)
            self._watch(query, compiled, bulletin, admin)
            error = query.exception()
            if self._is_overtaken:
                return Outcome(state=State.FAILED, message=OVERTAKEN, batches=tuple(self._batches))
            if error is None or is_stop(str(error)):
                state = State.STOPPED if self.stop.is_set() else State.DONE
                return Outcome(state=state, batches=tuple(self._batches))
            failure = failure_of(str(error))
            if failure.is_final or restarts >= self.pipeline.restart.attempts or self.stop.is_set():
                self._keep(checkpoint, str(error))
                return Outcome(state=State.FAILED, message=failure.said, batches=tuple(self._batches))
            restarts += 1
            wait = self.pipeline.restart.backoff_ms / 1000
            self.on_state(f"restart {restarts} of {self.pipeline.restart.attempts} in {wait:g} s after: {failure.said}")
            self.stop.wait(wait)

    def _settle_starts(self, checkpoint: Checkpoint, admin: Admin) -> Note:
        """Where a generation begins is found out once, before its first batch: `latest` is another place each time."""
        note = checkpoint.note()
        if note.starts or checkpoint.has_batches(note.generation):
            return note
        note = replace(note, starts=first_starts(admin, self.pipeline))
        checkpoint.write_note(note)
        return note

    def _compile(self, spark: "SparkSession", checkpoint: Checkpoint, note: Note) -> Compiled:
        folder = checkpoint.spark_folder(note.generation).as_posix()
        starts = {name: json.dumps(vector) for name, vector in note.starts.items()}
        read = stream_of(
            spark, self.pipeline, bootstrap=self.bootstrap, starts=starts, with_headers=needs_headers(self.pipeline)
        )
        return compile_pipeline(spark, self.pipeline, read, checkpoint=folder)

    def _settle_identity(self, checkpoint: Checkpoint, note: Note, compiled: Compiled) -> Note:
        """Refuse what cannot go on from this checkpoint, and note what now goes on from it."""
        identity = identity_of(self.pipeline, is_stateful=bool(compiled.operators))
        if note.identity is not None and checkpoint.has_batches(note.generation):
            reasons = incompatibilities(note.identity, identity)
            if reasons:
                raise IncompatibleChange(
                    f"{self.pipeline.file} does not fit the checkpoint {checkpoint.folder} any more: "
                    f"{'; '.join(reasons)}. Undo the change, or begin anew with `headrace pipeline rewind "
                    f"{self.pipeline.folder} --to-earliest`, or give it another name and checkpoint"
                )
        self._record = replace(self._record, definition=digest(identity))
        fresh = replace(note, identity=identity)
        if fresh != note:
            checkpoint.write_note(fresh)
        return fresh

    def _start(self, compiled: Compiled, writer: BatchWriter, folder: str) -> "StreamingQuery":
        stream = compiled.output.writeStream.foreachBatch(writer).outputMode("append")
        stream = stream.option("checkpointLocation", folder).queryName(f"{self.pipeline.name}-{self.run_id}")
        interval_ms = self.pipeline.trigger.interval_ms
        if self.is_once:
            return stream.trigger(availableNow=True).start()
        every = TRIGGER_DEFAULT_MS if interval_ms is None else interval_ms
        return stream.trigger(processingTime=spark_interval(every)).start()

    def _watch(self, query: "StreamingQuery", compiled: Compiled, bulletin: Bulletin, admin: Admin) -> None:
        """Until the query has ended: tell its progress, and listen for those who want it stopped."""
        last_batch = -1
        while True:
            is_active = query.isActive
            for progress in query.recentProgress:
                found = json.loads(progress.json)
                if found["batchId"] > last_batch and "addBatch" in found["durationMs"]:
                    last_batch = found["batchId"]
                    self._report(batch_report(found, compiled.counted), bulletin, admin)
            if not is_active:
                return
            self._listen(bulletin)
            if self.stop.is_set() and not query.status["isTriggerActive"]:
                query.stop()

    def _listen(self, bulletin: Bulletin) -> None:
        """A broker that does not answer stops nobody: the query has its own patience."""
        try:
            bulletin.follow(POLL_MS)
            now = time.monotonic()
            if now - self._heartbeat_at >= HEARTBEAT_MS / 1000:
                self._heartbeat_at = now
                bulletin.tell(run_message(self._record))
        except ClientError:
            time.sleep(POLL_MS / 1000)
        known = bulletin.ledger.pipelines.get(self.pipeline.name)
        if known is None or known.holder is None:
            return
        self._is_overtaken = known.holder.run != self.run_id
        if self._is_overtaken or self.run_id in known.stops:
            self.stop.set()

    def _report(self, report: dict[str, Any], bulletin: Bulletin, admin: Admin) -> None:
        reach(Failpoint.BATCH_DONE)
        now = time.monotonic()
        if now - self._lag_at >= LAG_SECONDS or self.is_once:
            self._lag_at = now
            with suppress(ClientError):
                lags = find_lags(admin, client_settings(self.bootstrap, self.pipeline), report["ends"])
                report["lag"] = summary(lags)
        report["definition"] = self._record.definition
        self._batches.append(report)
        with suppress(ClientError):
            bulletin.tell(batch_message(self.pipeline.name, self.run_id, report))
        self.on_batch(report)

    def _keep(self, checkpoint: Checkpoint, error: str) -> None:
        """The whole answer of Spark, for those who want more than one line."""
        with suppress(OSError), checkpoint.log_file.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} run {self.run_id} failed:\n{error}\n")


def _is_process(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _runtime_settings(pipeline: Pipeline) -> dict[str, str]:
    """Those that a session takes after it was made; the others are given when it is made."""
    return {name: value for name, value in pipeline.spark.settings.items() if name.startswith("spark.sql.")}

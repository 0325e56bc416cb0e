"""Load the records before the start of a stream by batch jobs, exactly up to the offset at which the stream begins.

The range is split into chunks. Each chunk is written like a micro-batch, identified by the name of the backfill and the
number of the chunk, so a chunk that is repeated after a kill is written once. The start of the stream is fixed before
the first chunk, so the stream may run at the same time.
"""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from headrace.client import LATEST, Admin
from headrace.spark.pipelines.checkpoints import Checkpoint, CheckpointError, CheckpointInUse, Vector
from headrace.spark.pipelines.compiler import compile_pipeline
from headrace.spark.pipelines.definition import Pipeline, ReadAs, Source
from headrace.spark.pipelines.failpoints import Failpoint, reach
from headrace.spark.pipelines.micro_batch_writer import MicroBatchWriter
from headrace.spark.pipelines.rewind import partitions_of, vector_at
from headrace.spark.pipelines.topics import FORMAT, needs_headers, source_options, stream_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.spark.pipelines.compiler import Reader

FILE = "backfills.json"
LOCK = "backfill.lock"
CHUNK_RECORDS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """One backfill, complete or not."""

    name: str
    generation: int
    begins: Mapping[str, Vector]
    """The start offsets, by source."""
    ends: Mapping[str, Vector]
    """The end offsets, exclusive."""
    chunk_records: int
    chunks: int
    done: int = 0

    @property
    def is_done(self) -> bool:
        return self.done >= self.chunks


class BackfillRefused(Exception):
    """The backfill would not have the wanted result; the message says why."""


def known_backfills(checkpoint: Checkpoint) -> list[Backfill]:
    try:
        found = json.loads((checkpoint.folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{checkpoint.folder / FILE} cannot be read: {error}") from None
    return [Backfill(**each) for each in found]


def plan_backfill(
    admin: Admin, pipeline: Pipeline, checkpoint: Checkpoint, *, from_ms: int, chunk_records: int, again: bool
) -> Backfill:
    """Return the incomplete backfill, or a new one; the caller holds the backfill lock."""
    known = known_backfills(checkpoint)
    for each in known:
        if not each.is_done:
            return each
    generation, ends = _hand_over(admin, pipeline, checkpoint)
    begins = {
        source.name: _lower(vector_at(admin, partitions_of(admin, source), from_ms), ends[source.name])
        for source in pipeline.sources
        if source.read_as is ReadAs.STREAM
    }
    for each in known:
        if each.ends == ends and each.generation == generation and not again:
            raise BackfillRefused(
                f"backfill {each.name} has already loaded the records before the stream; use --again to write "
                "them once more"
            )
    chunks = len(_cuts(begins, ends, chunk_records)) - 1
    planned = Backfill(
        name=uuid.uuid4().hex[:12],
        generation=generation,
        begins=begins,
        ends=ends,
        chunk_records=chunk_records,
        chunks=chunks,
    )
    _write(checkpoint, [*known, planned])
    return planned


def _hand_over(admin: Admin, pipeline: Pipeline, checkpoint: Checkpoint) -> tuple[int, Mapping[str, Vector]]:
    """Return where the stream begins. If that is not fixed yet, it is fixed now: after all existing records."""
    note = checkpoint.note()
    if not note.starts:
        try:
            with checkpoint.locked():
                note = checkpoint.note()
                if not note.starts:
                    streams = [source for source in pipeline.sources if source.read_as is ReadAs.STREAM]
                    starts = {each.name: vector_at(admin, partitions_of(admin, each), LATEST) for each in streams}
                    note = replace(note, starts=starts)
                    reach(Failpoint.HANDING_OVER)
                    checkpoint.write_note(note)
        except CheckpointInUse:
            note = checkpoint.note()
    if not note.starts:
        raise BackfillRefused("a run is just determining where its stream begins; try again in a moment")
    return note.generation, note.starts


def run_backfill(
    spark: "SparkSession",
    pipeline: Pipeline,
    checkpoint: Checkpoint,
    planned: Backfill,
    *,
    bootstrap: str,
    on_chunk: Callable[[Backfill], None],
) -> Backfill:
    """Load the remaining chunks; the caller holds the backfill lock."""
    cuts = _cuts(planned.begins, planned.ends, planned.chunk_records)
    writer = MicroBatchWriter(
        pipeline=pipeline,
        bootstrap=bootstrap,
        generation=planned.generation,
        batch_key=f"{pipeline.name}.backfill.{planned.name}",
    )
    current = planned
    for number in range(planned.done, planned.chunks):
        read = _chunk_of(spark, pipeline, bootstrap, cuts[number], cuts[number + 1])
        compiled = compile_pipeline(spark, pipeline, read)
        writer(compiled.output, number)
        for rows in compiled.shared:
            rows.unpersist()
        reach(Failpoint.CHUNK_WRITTEN)
        current = replace(current, done=number + 1)
        _write(checkpoint, [current if each.name == current.name else each for each in known_backfills(checkpoint)])
        on_chunk(current)
    return current


def refuse_state(spark: "SparkSession", pipeline: Pipeline, bootstrap: str) -> None:
    """Refuse a stateful transform before planning: a plan fixes where the stream begins, and that would remain."""
    read = stream_of(spark, pipeline, bootstrap=bootstrap, starts={}, with_headers=needs_headers(pipeline))
    operators = compile_pipeline(spark, pipeline, read).operators
    if operators:
        raise BackfillRefused(
            f"the transform keeps state ({', '.join(operators)}), so the rows on both sides of the backfill's "
            "end belong together. Load them through the stream: headrace pipeline rewind --to-time ..., then "
            "run"
        )


def _chunk_of(
    spark: "SparkSession",
    pipeline: Pipeline,
    bootstrap: str,
    begins: Mapping[str, Vector],
    ends: Mapping[str, Vector],
) -> "Reader":
    def read(source: Source) -> "DataFrame":
        options = source_options(pipeline, source, bootstrap, with_headers=needs_headers(pipeline))
        if source.read_as is ReadAs.TABLE:
            return spark.read.format(FORMAT).options(**options).load()
        options["startingOffsets"] = json.dumps(begins[source.name])
        options["endingOffsets"] = json.dumps(ends[source.name])
        options.setdefault("scan", "auto")
        return spark.read.format(FORMAT).options(**options).load()

    return read


def _cuts(begins: Mapping[str, Vector], ends: Mapping[str, Vector], chunk_records: int) -> list[Mapping[str, Vector]]:
    """Return the offsets between chunks, from the starts to the ends; every partition advances by the same number."""
    places = [(s, t, p) for s, topics in begins.items() for t, found in topics.items() for p in found]
    step = max(chunk_records // max(len(places), 1), 1)
    longest = max((ends[s][t][p] - begins[s][t][p] for s, t, p in places), default=0)
    cuts: list[Mapping[str, Vector]] = []
    for moved in [*range(0, longest, step), longest] if longest else [0]:
        vector: dict[str, dict[str, dict[str, int]]] = {}
        for s, t, p in places:
            vector.setdefault(s, {}).setdefault(t, {})[p] = min(begins[s][t][p] + moved, ends[s][t][p])
        cuts.append(vector)
    return cuts


def _lower(wanted: Vector, ends: Vector) -> dict[str, dict[str, int]]:
    """Return offsets that are not after the start of the stream; partitions that the stream does not start with are
    left out.
    """
    return {
        topic: {part: min(wanted.get(topic, {}).get(part, offset), offset) for part, offset in found.items()}
        for topic, found in ends.items()
    }


def _write(checkpoint: Checkpoint, known: list[Backfill]) -> None:
    entries: list[dict[str, Any]] = [asdict(each) for each in known]
    checkpoint.write_json(FILE, entries)

"""The records of the topic `__headrace_pipelines`, in which runs publish their status, and how they are combined.

The topic has one partition, so all runs see one order of events. A run claims its pipeline by its first record; it
holds the pipeline if no earlier run holds it: the previous holder has ended or sent nothing for longer than a lease.
The broker sets the timestamps, so the clocks of machines do not matter.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

TOPIC = "__headrace_pipelines"
TOPIC_CONFIGS = {
    "cleanup.policy": "compact,delete",
    "retention.ms": str(7 * 86_400_000),
    "segment.ms": str(600_000),
    "message.timestamp.type": "LogAppendTime",
}
HEARTBEAT_MS = 5_000
LEASE_MS = 20_000
BATCHES_KEPT = 1_000
"""Progress records per pipeline that survive compaction."""


class RunState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    """The run was asked to stop."""
    DONE = "done"
    """The run read all existing records, as it was configured to."""
    FAILED = "failed"
    REFUSED = "refused"
    """Another run holds the pipeline."""


UNBEGUN = frozenset((RunState.STARTING, RunState.FAILED, RunState.REFUSED))
"""States of a run that has not begun its work, or was refused."""
ENDED = frozenset((RunState.STOPPED, RunState.DONE, RunState.FAILED, RunState.REFUSED))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A heartbeat of a run."""

    pipeline: str
    run: str
    state: RunState
    host: str
    process_id: int
    started_ms: int
    definition: str = ""
    message: str = ""


@dataclass(slots=True, kw_only=True)
class Known:
    """The combined state of one pipeline."""

    holder: RunRecord | None = None
    seen_ms: int = 0
    """When the holder's last record arrived, by the broker's clock."""
    batches: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Progress of the newest batches, by their numbers, ascending."""
    stops: set[str] = field(default_factory=set)
    """Runs that were asked to stop."""
    refused: set[str] = field(default_factory=set)

    def is_alive(self, now_ms: int) -> bool:
        return self.holder is not None and self.holder.state not in ENDED and now_ms - self.seen_ms <= LEASE_MS

    def last_batch(self) -> Mapping[str, Any] | None:
        return self.batches[next(reversed(self.batches))] if self.batches else None


def run_message(record: RunRecord) -> tuple[str, bytes]:
    """Return key and value."""
    value = {
        "kind": "run",
        "pipeline": record.pipeline,
        "run": record.run,
        "state": record.state,
        "host": record.host,
        "process_id": record.process_id,
        "started_ms": record.started_ms,
        "definition": record.definition,
        "message": record.message,
    }
    return f"{record.pipeline}/run/{record.run}", json.dumps(value).encode()


def batch_message(pipeline: str, run: str, progress: Mapping[str, Any]) -> tuple[str, bytes]:
    value = {"kind": "batch", "pipeline": pipeline, "run": run, **progress}
    return f"{pipeline}/batch/{int(progress['batch']) % BATCHES_KEPT}", json.dumps(value).encode()


def stop_message(pipeline: str, run: str) -> tuple[str, bytes]:
    return f"{pipeline}/stop/{run}", json.dumps({"kind": "stop", "pipeline": pipeline, "run": run}).encode()


class Ledger:
    """The records read so far, in order."""

    def __init__(self) -> None:
        self.pipelines: dict[str, Known] = {}

    def apply_all(self, records: Iterable[tuple[int, bytes | None]]) -> None:
        for timestamp_ms, value in records:
            self.apply(timestamp_ms, value)

    def apply(self, timestamp_ms: int, value: bytes | None) -> None:
        """Apply a record; an undecodable one is foreign or of a newer version, and is skipped."""
        try:
            found = json.loads(value or b"null")
            kind, pipeline = found["kind"], str(found["pipeline"])
        except (ValueError, TypeError, KeyError):
            return
        known = self.pipelines.setdefault(pipeline, Known())
        if kind == "run":
            _apply_run(known, timestamp_ms, found)
        elif kind == "batch" and isinstance(found.get("batch"), int):
            _apply_batch(known, found)
        elif kind == "stop":
            known.stops.add(str(found.get("run")))


def _apply_batch(known: Known, found: Mapping[str, Any]) -> None:
    """Apply progress. After a rewind the numbers restart: reports with higher numbers are older than the rewind."""
    while known.batches and next(reversed(known.batches)) >= found["batch"]:
        known.batches.popitem()
    known.batches[found["batch"]] = found
    while len(known.batches) > BATCHES_KEPT:
        del known.batches[next(iter(known.batches))]


def _apply_run(known: Known, timestamp_ms: int, found: Mapping[str, Any]) -> None:
    try:
        record = RunRecord(
            pipeline=found["pipeline"],
            run=found["run"],
            state=RunState(found["state"]),
            host=found["host"],
            process_id=found["process_id"],
            started_ms=found["started_ms"],
            definition=found["definition"],
            message=found["message"],
        )
    except (KeyError, ValueError):
        return
    if record.state is RunState.REFUSED or record.run in known.refused:
        return
    holder = known.holder
    is_holder = holder is not None and holder.run == record.run
    is_free = holder is None or holder.state in ENDED or timestamp_ms - known.seen_ms > LEASE_MS
    if is_holder or is_free:  # also by its end: compaction removes the records before it
        known.holder, known.seen_ms = record, timestamp_ms
    elif record.state not in ENDED:
        known.refused.add(record.run)

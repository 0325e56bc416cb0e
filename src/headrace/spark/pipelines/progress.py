"""The report of one micro-batch, from Spark's progress event: rows, rates, times, watermark, and end offsets."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headrace.spark.pipelines.checkpoints import offsets_of

METRICS_PREFIX = "headrace_"
INPUT_METRICS = f"{METRICS_PREFIX}input"
LATE_METRICS = f"{METRICS_PREFIX}late"
OUTPUT_METRICS = f"{METRICS_PREFIX}output"
REJECTED_METRICS = f"{METRICS_PREFIX}rejected"
SHARED_METRICS = f"{METRICS_PREFIX}shared"
"""Names under which a compiled query counts its rows."""

READ_COLUMN, WRITTEN_COLUMN, DEAD_COLUMN, QUARANTINED_COLUMN = "read", "written", "dead", "quarantined"
BAD_COLUMN, LATE_COLUMN, DRIFTED_COLUMN = "bad", "late", "drifted"
ROW_COUNTS = (
    READ_COLUMN, WRITTEN_COLUMN, LATE_COLUMN, BAD_COLUMN, DEAD_COLUMN, QUARANTINED_COLUMN, DRIFTED_COLUMN,
)  # fmt: skip
EXPECTATION_PREFIX = "failed_"
DRIFTED_FIELDS_COLUMN = "drifted_fields"
"""Counts of unknown fields that came together: an item is their names joined by FIELD_SEPARATOR."""
FIELD_SEPARATOR = "\x1f"

_PLAN = ("queryPlanning", "walCommit")
_READ = ("latestOffset", "getBatch", "getOffset", "setOffsetRange", "getEndOffset")
_PROCESS = ("addBatch",)
_COMMIT = ("commitOffsets", "commitBatch")


def batch_report(progress: Mapping[str, Any], expectations: Mapping[str, str]) -> dict[str, Any]:
    """Build the report; `expectations` are the names of expectations by the columns that count their violations."""
    observed: Mapping[str, Mapping[str, Any]] = progress.get("observedMetrics") or {}
    # Each source has its own metrics: the common ones are added up.
    every = [metrics for name, metrics in observed.items() if name.startswith(METRICS_PREFIX)]
    rows = {name: _sum(every, name) for name in ROW_COUNTS}
    seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1000
    return {
        "batch": int(progress["batchId"]),
        "query": progress.get("id"),
        "spark_run": progress.get("runId"),
        "began": progress.get("timestamp"),
        "began_ms": _milliseconds(progress.get("timestamp")),
        "seconds": seconds,
        "rows": rows,
        "failed_expectations": {name: _sum(every, column) for column, name in expectations.items()},
        "drifted_fields": _drifted_fields(every),
        "rows_per_second": round(rows[READ_COLUMN] / seconds, 1) if seconds else 0.0,
        "times_ms": _times(progress.get("durationMs", {})),
        "watermark": (progress.get("eventTime") or {}).get("watermark"),
        "state_rows": sum(int(each.get("numRowsTotal", 0)) for each in progress.get("stateOperators") or ()),
        "ends": _ends(progress),
    }


def _sum(metrics: list[Mapping[str, Any]], column: str) -> int:
    return sum(int(each.get(column) or 0) for each in metrics)


def _drifted_fields(metrics: list[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of records that have each field."""
    found: dict[str, int] = {}
    for each in metrics:
        for item in each.get(DRIFTED_FIELDS_COLUMN) or ():
            for name in (item.get("item") or "").split(FIELD_SEPARATOR):
                if name:
                    found[name] = found.get(name, 0) + int(item["count"])
    return found


def _times(durations: Mapping[str, int]) -> dict[str, int]:
    """Return the parts of a batch's time. Reading and writing rows are one pass in Spark and counted as `process`."""

    def total(names: tuple[str, ...]) -> int:
        return sum(int(durations.get(name, 0)) for name in names)

    return {"plan": total(_PLAN), "read": total(_READ), "process": total(_PROCESS), "commit": total(_COMMIT)}


def _ends(progress: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the end offset of each partition that was read. A topic that several sources read appears once, with the
    lowest offset of each partition.
    """
    found: dict[str, dict[str, int]] = {}
    for source in progress.get("sources") or ():
        end = source.get("endOffset")
        for topic, partitions in offsets_of(end if isinstance(end, Mapping) else None).items():
            slowest = found.setdefault(topic, {})
            slowest |= {number: min(offset, slowest.get(number, offset)) for number, offset in partitions.items()}
    return found


def _milliseconds(timestamp: str | None) -> int:
    return 0 if not timestamp else round(datetime.fromisoformat(timestamp).timestamp() * 1000)


def totals(batches: list[Mapping[str, Any]]) -> dict[str, int]:
    """Add up the rows of several batches."""
    found: dict[str, int] = {}
    for batch in batches:
        for name, count in batch["rows"].items():
            found[name] = found.get(name, 0) + int(count)
    return found

"""Render the status of pipelines in the text format of Prometheus."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from headrace.spark.pipelines.progress import ROW_COUNTS
from headrace.spark.pipelines.records import Known, RunRecord, RunState

_Value = Callable[[Mapping[str, Any]], float | None]

_OF_LAST_BATCH: Mapping[str, tuple[str, _Value]] = {
    "headrace_pipeline_last_batch": ("Number of the newest batch that is done.", lambda batch: batch["batch"]),
    "headrace_pipeline_batch_seconds": ("Time that the newest batch took.", lambda batch: batch["seconds"]),
    "headrace_pipeline_rows_per_second": (
        "Rows read a second in the newest batch.",
        lambda batch: batch["rows_per_second"],
    ),
    "headrace_pipeline_state_rows": ("Rows kept from batch to batch.", lambda batch: batch["state_rows"]),
}


def prometheus_text(pipelines: Mapping[str, Known], now_ms: int) -> str:
    newest = {name: batch for name, known in pipelines.items() if (batch := known.last_batch()) is not None}
    lines: list[str] = []
    _family(lines, "headrace_pipeline_up", "Whether a run of the pipeline is alive.")
    lines += [f"headrace_pipeline_up{_labels(name)} {int(known.is_alive(now_ms))}" for name, known in pipelines.items()]
    for metric, (text, value) in _OF_LAST_BATCH.items():
        _family(lines, metric, text)
        lines += [
            f"{metric}{_labels(name)} {number}"
            for name, batch in newest.items()
            if (number := value(batch)) is not None
        ]
    _batch_parts(lines, newest)
    _lags(lines, newest)
    _behind(lines, newest)
    _counters(lines, newest)
    return "\n".join(lines) + "\n"


def run_page(record: RunRecord, batch: Mapping[str, Any] | None, *, is_alive: bool) -> str:
    """Render one run by its newest batch, for the process that runs it."""
    now_ms = round(time.time() * 1000)
    known = Known(
        holder=replace(record, state=RunState.RUNNING),
        seen_ms=now_ms if is_alive else 0,
        batches={} if batch is None else {int(batch["batch"]): batch},
    )
    return prometheus_text({record.pipeline: known}, now_ms)


_Batches = Mapping[str, Mapping[str, Any]]


def _batch_parts(lines: list[str], newest: _Batches) -> None:
    _family(lines, "headrace_pipeline_batch_rows", "Rows of the newest batch, by what became of them.")
    for name, batch in newest.items():
        lines += [
            f"headrace_pipeline_batch_rows{_labels(name, kind=kind)} {batch['rows'][kind]}"
            for kind in ROW_COUNTS
            if batch["rows"][kind] is not None
        ]
    _family(lines, "headrace_pipeline_batch_part_seconds", "Time of the newest batch, by its parts.")
    for name, batch in newest.items():
        lines += [
            f"headrace_pipeline_batch_part_seconds{_labels(name, part=part)} {took / 1000}"
            for part, took in batch["times_ms"].items()
        ]


def _lags(lines: list[str], newest: _Batches) -> None:
    for metric, text, field in (
        ("headrace_pipeline_lag_records", "Records that are not read yet.", "records"),
        ("headrace_pipeline_lag_seconds", "Age of the oldest record that is not read yet.", "seconds"),
    ):
        _family(lines, metric, text)
        for name, batch in newest.items():
            for part in (batch.get("lag") or {}).get("partitions", ()):
                if part[field] is not None:
                    labels = _labels(name, topic=part["topic"], partition=str(part["partition"]))
                    lines.append(f"{metric}{labels} {part[field]}")


def _behind(lines: list[str], newest: _Batches) -> None:
    metric = "headrace_pipeline_offsets_behind_latest"
    _family(lines, metric, "Offsets between what is read and the end of a partition: the least, mean and most of all.")
    for name, batch in newest.items():
        for of, count in ((batch.get("lag") or {}).get("behind_latest") or {}).items():
            lines.append(f"{metric}{_labels(name, of=of)} {count}")


def _counters(lines: list[str], newest: _Batches) -> None:
    """Render the counts of the run so far. They restart at zero with a new run, as Prometheus expects of counters."""
    totals = {name: batch["totals"] for name, batch in newest.items() if "totals" in batch}
    for metric, text, field in (
        ("headrace_pipeline_batches_total", "Batches that the run has done.", "batches"),
        ("headrace_pipeline_restarts_total", "Restarts of the query or of Spark in this run.", "restarts"),
    ):
        _family(lines, metric, text, kind="counter")
        lines += [f"{metric}{_labels(name)} {each[field]}" for name, each in totals.items()]
    for metric, text, field, label in (
        ("headrace_pipeline_rows_total", "Rows of the run, by what became of them.", "rows", "kind"),
        (
            "headrace_pipeline_failed_expectations_total",
            "Rows of the run that did not meet an expectation.",
            "failed_expectations",
            "expectation",
        ),
        (
            "headrace_pipeline_drifted_fields_total",
            "Records of the run with a field that the schema does not have.",
            "drifted_fields",
            "field",
        ),
    ):
        _family(lines, metric, text, kind="counter")
        for name, each in totals.items():
            lines += [
                f"{metric}{_labels(name, **{label: key})} {count}"
                for key, count in each[field].items()
                if count is not None
            ]


def _family(lines: list[str], metric: str, text: str, *, kind: str = "gauge") -> None:
    lines += [f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"]


def _labels(pipeline: str, **more: str) -> str:
    pairs = {"pipeline": pipeline, **more}
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""What pipelines told of themselves, as the text that Prometheus reads."""

from collections.abc import Callable, Mapping
from typing import Any

from headrace.spark.pipelines.progress import ROW_COUNTS
from headrace.spark.pipelines.records import Known

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
    lines: list[str] = []
    _family(lines, "headrace_pipeline_up", "Whether a run of the pipeline is alive.")
    lines += [f"headrace_pipeline_up{_labels(name)} {int(known.is_alive(now_ms))}" for name, known in pipelines.items()]
    newest = {name: batch for name, known in pipelines.items() if (batch := known.last_batch()) is not None}
    for metric, (text, value) in _OF_LAST_BATCH.items():
        _family(lines, metric, text)
        lines += [
            f"{metric}{_labels(name)} {number}"
            for name, batch in newest.items()
            if (number := value(batch)) is not None
        ]
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
    return "\n".join(lines) + "\n"


def _family(lines: list[str], metric: str, text: str) -> None:
    lines += [f"# HELP {metric} {text}", f"# TYPE {metric} gauge"]


def _labels(pipeline: str, **more: str) -> str:
    pairs = {"pipeline": pipeline, **more}
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

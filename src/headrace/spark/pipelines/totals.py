"""Totals of all batches of a run: monotonic counts, for alerts and for `status`."""

from collections.abc import Mapping
from typing import Any

from headrace.spark.pipelines.progress import ROW_COUNTS

DRIFTED_FIELDS_MAX = 100
"""Names of unknown fields that are counted separately; further ones share a count."""
OTHER_FIELDS = "(other fields)"


def no_totals() -> dict[str, Any]:
    return {
        "batches": 0,
        "restarts": 0,
        "rows": dict.fromkeys(ROW_COUNTS, 0),
        "failed_expectations": {},
        "drifted_fields": {},
    }


def with_batch(totals: Mapping[str, Any], report: Mapping[str, Any]) -> dict[str, Any]:
    """Add a batch; values that Spark does not provide for a project's run stay unknown."""
    rows = {
        name: None if count is None or totals["rows"].get(name) is None else totals["rows"][name] + count
        for name, count in report["rows"].items()
    }
    fields = dict(totals["drifted_fields"])
    for name, count in report.get("drifted_fields", {}).items():
        known = name if name in fields or len(fields) < DRIFTED_FIELDS_MAX else OTHER_FIELDS
        fields[known] = fields.get(known, 0) + count
    return {
        "batches": totals["batches"] + 1,
        "restarts": totals["restarts"],
        "rows": rows,
        "failed_expectations": _added(totals["failed_expectations"], report["failed_expectations"]),
        "drifted_fields": fields,
    }


def _added(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: before.get(name, 0) + more.get(name, 0) for name in (*before, *(set(more) - set(before)))}


def totals_of_run(batch: Mapping[str, Any] | None, run: str) -> dict[str, Any]:
    """Return the totals of a run from its newest batch: a restarted run continues to count."""
    if batch is None or batch.get("run") != run or "totals" not in batch:
        return no_totals()
    return dict(batch["totals"])

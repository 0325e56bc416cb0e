"""The read positions of a Spark project, from the checkpoints in its storage, and the report of one run."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

from headrace.model.ids import TopicPartition
from headrace.spark.offset_vectors import CheckpointOffsetError, from_json
from headrace.spark.pipelines.progress import READ_COLUMN, ROW_COUNTS

CHECKPOINTS = "_checkpoints"
"""The folder of the storage in which Spark keeps one checkpoint for each flow and version of it."""


class Position(NamedTuple):
    """The position of one flow in the topics it reads."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


def positions(storage: str) -> dict[str, Position] | None:
    """Return positions by the folders of the flows' checkpoints; None if the storage is not on this machine."""
    address = urlparse(storage)
    if address.scheme != "file":
        return None
    return {
        str(log.parent): found
        for log in Path(unquote(address.path), CHECKPOINTS).rglob("offsets")
        if (found := _position(log)) is not None
    }


def _position(log: Path) -> Position | None:
    """Return the logged and committed position; None if the flow reads no topic."""
    starts: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    committed = {file.name for file in (log.parent / "commits").glob("*")}
    numbers = sorted(int(file.name) for file in log.glob("*") if file.name.isdecimal() and file.name in committed)
    for number in numbers:
        for line in (log / str(number)).read_text(encoding="utf-8").splitlines()[2:]:
            try:
                offset = from_json(json.loads(line))
            except (ValueError, CheckpointOffsetError, AttributeError):
                continue  # of another kind of source
            starts |= {each: begin for each, begin in offset.starts.items() if each not in starts}
            ends |= offset.ends
    return Position(starts, ends) if ends else None


def read_between(before: Mapping[str, Position], after: Mapping[str, Position]) -> int:
    """Count the offsets that all flows together have read."""
    count = 0
    for place, position in after.items():
        begin = before[place].ends if place in before else {}
        count += sum(end - begin.get(each, position.starts.get(each, 0)) for each, end in position.ends.items())
    return count


def slowest(found: Mapping[str, Position]) -> dict[str, dict[str, int]]:
    """Return the position that every flow has reached: by topic and partition."""
    ends: dict[str, dict[str, int]] = {}
    for position in found.values():
        for place, end in position.ends.items():
            topic = ends.setdefault(place.topic, {})
            topic[str(place.partition)] = min(end, topic.get(str(place.partition), end))
    return ends


def run_report(
    number: int,
    *,
    began: float,
    seconds: float,
    before: Mapping[str, Position] | None,
    after: Mapping[str, Position] | None,
) -> dict[str, Any]:
    """Build a report in the form of a batch's report; values that Spark does not provide for such a run are None."""
    read = None if before is None or after is None else read_between(before, after)
    return {
        "batch": number,
        "began": datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "began_ms": round(began * 1000),
        "seconds": round(seconds, 3),
        "rows": {name: read if name == READ_COLUMN else None for name in ROW_COUNTS},
        "failed_expectations": {},
        "drifted_fields": {},
        "rows_per_second": None if read is None else round(read / seconds, 1),
        "times_ms": {},
        "watermark": None,
        "state_rows": None,
        "ends": slowest(after or {}),
    }

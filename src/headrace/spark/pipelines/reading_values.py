"""Single values of a pipeline file that several of its parts have: topic names, view names, times."""

import re
from datetime import UTC, datetime

from headrace.spark.pipelines.definition import INPUT_VIEW

TOPIC_NAME_LENGTH_MAX = 249
OPTIONS_OF_RUNNER = {
    "subscribe": "topic",
    "subscribePattern": "pattern",
    "assign": "topic",
    "startingOffsets": "start",
    "startingTimestamp": "start",
    "maxOffsetsPerTrigger": "rows_per_batch",
    "valueFormat": "format",
    "onBadRecord": "bad_records",
    "topic": "topic",
    "sinkName": "name",
    "delivery": "delivery",
    "kafka.bootstrap.servers": "bootstrap",
    "bootstrap.servers": "bootstrap",
    "commitGroup": "name",
    "sourceName": "name",
    "kafka.group.id": "name",
}
"""Options of the data source that a key of the file stands for."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_MILLISECONDS = re.compile(r"[0-9]{11,15}")


def topic_name(text: str) -> str:
    if not _TOPIC.fullmatch(text) or len(text) > TOPIC_NAME_LENGTH_MAX or text in (".", ".."):
        raise ValueError(
            f'no topic can be called "{text}": letters, digits, ".", "_" and "-", at most {TOPIC_NAME_LENGTH_MAX}'
        )
    return text


def folder_path(text: str) -> str:
    """A path of the file system; an address would be taken for a strange path below the pipeline's own folder."""
    if _ADDRESS.match(text):
        raise ValueError(f'"{text}" is an address, and a folder is needed here: mount it where all workers reach it')
    return text


def view_name(text: str) -> str:
    if not _VIEW.fullmatch(text):
        raise ValueError(f'"{text}" cannot be the name of a view: letters, digits and "_", as in {INPUT_VIEW}')
    return text


def start_of(text: str) -> str:
    """earliest, latest or a time, as milliseconds since 1970."""
    if text in ("earliest", "latest") or _MILLISECONDS.fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f'"{text}" is no start: write earliest, latest or a time such as 2026-05-31T12:00:00Z'
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    if moment < datetime.fromtimestamp(0, UTC):
        raise ValueError(f'"{text}" is before 1970: write earliest for all there is')
    return str(round(moment.timestamp() * 1000))

"""Values that several parts of a pipeline file have: topic names, view names, times."""

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
"""Options of the data source that have their own key in the file."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_MILLISECONDS = re.compile(r"[0-9]{11,15}")


def topic_name(text: str) -> str:
    if not _TOPIC.fullmatch(text) or len(text) > TOPIC_NAME_LENGTH_MAX or text in (".", ".."):
        raise ValueError(
            f'"{text}" is not a valid topic name: use letters, digits, ".", "_" and "-", at most '
            f"{TOPIC_NAME_LENGTH_MAX}"
        )
    return text


def table_name(text: str) -> str:
    if not _TABLE.fullmatch(text):
        raise ValueError(f'"{text}" is not a valid table name: use letters, digits and "_", as in shop.orders')
    return text


def folder_path(text: str) -> str:
    """Return a path of the file system; a URI would become a strange path below the pipeline's own folder."""
    if _ADDRESS.match(text):
        raise ValueError(f'"{text}" is a URI, but a folder is needed here: mount it where all workers can reach it')
    return text


def view_name(text: str) -> str:
    if not _VIEW.fullmatch(text):
        raise ValueError(f'"{text}" is not a valid view name: use letters, digits and "_", as in {INPUT_VIEW}')
    return text


def start_of(text: str) -> str:
    """Return earliest, latest or a time, as milliseconds since 1970."""
    if text in ("earliest", "latest") or _MILLISECONDS.fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f'"{text}" is not a start: write earliest, latest or a time such as 2026-05-31T12:00:00Z'
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    if moment < datetime.fromtimestamp(0, UTC):
        raise ValueError(f'"{text}" is before 1970: write earliest for all records')
    return str(round(moment.timestamp() * 1000))

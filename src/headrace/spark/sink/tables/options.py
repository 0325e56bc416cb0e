"""The options of the sinks of files, checked before anything is written."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from headrace.spark.option_names import OptionError, refuse_renamed, suggestion
from headrace.spark.sink.options import SINK_NAME_DEFAULT, checked_batch_id, checked_name

TARGET_FILE_BYTES_DEFAULT = 128 * 1024 * 1024
TARGET_FILE_BYTES_MIN = 1024
COMPRESSIONS = ("snappy", "zstd", "gzip", "lz4", "none")
NAMES = (
    "path",
    "targetFileBytes",
    "partitionColumns",
    "compression",
    "sinkName",
    "idempotenceKey",
    "idempotenceBatchId",
)
SPARKS_OWN = frozenset({"queryname", "checkpointlocation", "outputmode"})
"""Options that Spark itself adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    path: str
    """A folder of a local or mounted file system."""
    target_file_bytes: int = TARGET_FILE_BYTES_DEFAULT
    partition_columns: tuple[str, ...] = ()
    compression: str = "snappy"
    sink_name: str = SINK_NAME_DEFAULT
    idempotence_key: str | None = None
    idempotence_batch_id: int | None = None

    @property
    def is_repeatable(self) -> bool:
        return False


def parse_table_options(options: Mapping[str, str]) -> TableOptions:
    lower = {name.lower(): value for name, value in options.items()}
    refuse_renamed(options)
    known = {name.lower(): name for name in NAMES}
    for name in lower:
        if name not in known and name not in SPARKS_OWN:
            raise OptionError(f'unknown option "{name}"{suggestion(name, known.values())}')
    key = lower.get("idempotencekey")
    if key is None and "idempotencebatchid" in lower:
        raise OptionError("option idempotenceBatchId numbers the writes of one idempotenceKey: set that too")
    compression = lower.get("compression", "snappy")
    if compression not in COMPRESSIONS:
        raise OptionError(f"option compression is one of {', '.join(COMPRESSIONS)}, not {compression!r}")
    return TableOptions(
        path=_local_path(lower.get("path")),
        target_file_bytes=_size(lower.get("targetfilebytes", str(TARGET_FILE_BYTES_DEFAULT))),
        partition_columns=tuple(filter(None, (name.strip() for name in lower.get("partitioncolumns", "").split(",")))),
        compression=compression,
        sink_name=checked_name("sinkName", lower.get("sinkname", SINK_NAME_DEFAULT)),
        idempotence_key=None if key is None else checked_name("idempotenceKey", key),
        idempotence_batch_id=checked_batch_id(lower.get("idempotencebatchid")),
    )


def _local_path(path: str | None) -> str:
    if not path:
        raise OptionError("option path is missing: name the folder, as in .start(path) or .save(path)")
    parts = urlsplit(path)
    if parts.scheme == "file" and not parts.netloc:
        return unquote(parts.path)
    if parts.scheme:
        raise OptionError(f"option path names a folder of a file system that all workers share, not {path!r}")
    return path


def _size(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text) or int(text) < TARGET_FILE_BYTES_MIN:
        raise OptionError(f"option targetFileBytes is a number of bytes from {TARGET_FILE_BYTES_MIN} on, not {text!r}")
    return int(text)

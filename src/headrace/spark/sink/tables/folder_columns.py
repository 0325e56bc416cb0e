"""The columns of a Parquet folder, noted in a file: a column of another type would make the whole folder unreadable.

Columns may be added and left out, as readers of Parquet allow. Their types and the partition columns cannot change.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from typing import Any

from headrace.spark.option_names import OptionError
from headrace.spark.sink.tables.options import TableOptions
from headrace.spark.sink.tables.parquet import OWN_FOLDER
from headrace.spark.sink.tables.written_files import sync_folder

NOTE_FILE = "columns.json"


def noted_partition_columns(path: str) -> tuple[str, ...] | None:
    """Return the partition columns of a folder; None if nothing was written to it."""
    noted = _noted(path)
    return None if noted is None else tuple(noted["folders"])


class FolderColumns:
    def __init__(self, options: TableOptions, types: Mapping[str, str]) -> None:
        self._path = options.path
        self._folders = list(options.partition_columns)
        self._types = dict(types)

    def check(self) -> None:
        """Refuse rows that do not match the existing files, before any row is written."""
        noted = self._noted()
        if noted is None:
            return
        other = sorted(name for name, kind in self._types.items() if noted["types"].get(name, kind) != kind)
        if other:
            changes = ", ".join(f"`{name}` is {self._types[name]} and was {noted['types'][name]}" for name in other)
            raise OptionError(
                f"the rows do not match the files in {self._path}: {changes}; cast them, or write to another folder"
            )
        if noted["folders"] != self._folders:
            raise OptionError(
                f"the files in {self._path} are partitioned by {', '.join(noted['folders']) or 'nothing'}: set the "
                "option partitionColumns to that, or write to another folder"
            )

    def note(self) -> None:
        """Note the columns before files with them become visible. A lock orders concurrent writers."""
        if self._is_noted():
            return
        os.makedirs(os.path.dirname(self._file), exist_ok=True)
        with open(f"{self._file}.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed, also by the end of this process
            self.check()  # another writer may have noted other types since these rows were begun
            noted = self._noted() or {"types": {}, "folders": self._folders}
            noted["types"] |= self._types
            part = f"{self._file}.part"
            with open(part, "w", encoding="utf-8") as file:
                json.dump(noted, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self._file)
            sync_folder(os.path.dirname(self._file))

    def _is_noted(self) -> bool:
        noted = self._noted()
        if noted is None or noted["folders"] != self._folders:
            return False
        return all(noted["types"].get(name) == kind for name, kind in self._types.items())

    @property
    def _file(self) -> str:
        return _file_of(self._path)

    def _noted(self) -> dict[str, Any] | None:
        return _noted(self._path)


def _file_of(path: str) -> str:
    return os.path.join(path, OWN_FOLDER, NOTE_FILE)


def _noted(path: str) -> dict[str, Any] | None:
    try:
        with open(_file_of(path), encoding="utf-8") as file:
            noted: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return None
    return noted

"""Parquet folders: files are staged in a folder that readers skip, then listed, then moved to their final folder.

The list of a batch's files is its commit: it is written whole and appears in one step. The moves follow, and the next
writer completes them first if they were interrupted. So a kill at any moment leaves a batch either without a list, and
its files never become visible, or with one, and all of them do.
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.spark.sink.identity import Identity
from headrace.spark.sink.tables.batch_commits import (
    BatchCommit,
    FileReport,
    WrittenByEarlierVersion,
    is_noted,
    is_repeat,
)
from headrace.spark.sink.tables.options import TableOptions
from headrace.spark.sink.tables.written_files import sync_folder

OWN_FOLDER = "_headrace"
"""Readers of Parquet folders skip names that begin with an underscore."""

_STAGING, _BATCHES = "staging", "batches"
_BATCHES_BEFORE = "epochs"
"""The folder of the lists of development versions before 0.1, which is refused."""
_REPEATS = "repeats"
"""The field of a list that has, for each later run that repeated the batch, the write that did."""
REPEATS_MAX = 100
"""Runs that are kept in it: each restart of a query that fails in the same batch is a new run."""


class CommittedFileMissing(RuntimeError):
    """A file of a committed batch is neither staged nor in its final folder: it was removed by other software."""


class ParquetFolder:
    def __init__(self, options: TableOptions) -> None:
        self._folder = options.path

    def staging_folder(self, identity: Identity | None, write_id: str) -> str:
        name = write_id if identity is None else f"{identity.batch_id}-{write_id}"
        owner = "once" if identity is None else identity.owner
        return os.path.join(self._folder, OWN_FOLDER, _STAGING, owner, name)

    def committed(self, owner: str, run: str = "") -> BatchCommit | None:
        newest = max(self._batch_ids(owner), default=None)
        if newest is None:
            return None
        listed = self._read(owner, newest)
        if run in listed.get(_REPEATS, {}):
            return BatchCommit(newest, run, listed[_REPEATS][run])
        return BatchCommit(newest, listed["run"], listed["write"])

    def note_repeat(self, identity: Identity, write_id: str) -> None:
        found = self.committed(identity.owner, identity.run)
        if not is_repeat(found, identity, write_id) or is_noted(found, identity):
            return
        owner, batch_id = identity.owner, identity.batch_id
        listed = self._read(owner, batch_id)
        repeats = list(listed.get(_REPEATS, {}).items())[1 - REPEATS_MAX :]  # without the oldest
        listed[_REPEATS] = dict([*repeats, (identity.run, write_id)])
        part = self._write_part(owner, batch_id, listed, write_id)
        os.replace(part, os.path.join(self._lists(owner), f"{batch_id}.json"))
        sync_folder(self._lists(owner))

    def commit(self, reports: Sequence[FileReport], identity: Identity | None, write_id: str) -> None:
        source = self.staging_folder(identity, write_id)
        files = [each.path for report in reports for each in report.files]
        if not files:
            return
        if identity is None:
            self._move(source, files)
            shutil.rmtree(source, ignore_errors=True)
            return
        self._finish_moves(identity.owner)
        if is_repeat(self.committed(identity.owner, identity.run), identity, write_id):
            self.note_repeat(identity, write_id)
        else:
            listing = {"run": identity.run, "write": write_id, "staging": os.path.basename(source), "files": files}
            if not self._list(identity.owner, identity.batch_id, listing):
                # Another driver of the same query was faster: its list counts.
                self.note_repeat(identity, write_id)
        self._finish_moves(identity.owner)
        self._clean(identity.owner)

    def finish_commit(self, identity: Identity) -> None:
        self._finish_moves(identity.owner)

    def discard(self, reports: Sequence[FileReport]) -> None:
        for report in reports:
            shutil.rmtree(self.staging_folder(report.identity, report.write_id), ignore_errors=True)

    # Lists

    def _lists(self, owner: str) -> str:
        return os.path.join(self._folder, OWN_FOLDER, _BATCHES, owner)

    def _batch_ids(self, owner: str) -> Iterator[int]:
        self._refuse_earlier_lists(owner)
        try:
            names = os.listdir(self._lists(owner))
        except FileNotFoundError:
            return
        for name in names:
            if name.endswith(".json"):
                yield int(name.removesuffix(".json"))

    def _refuse_earlier_lists(self, owner: str) -> None:
        before = os.path.join(self._folder, OWN_FOLDER, _BATCHES_BEFORE, owner)
        if os.path.isdir(before):
            raise WrittenByEarlierVersion(
                f"the batches of {owner} are listed in {before}, where a development version before 0.1 kept them: "
                f"stop all writers of the folder, then move it to {self._lists(owner)}. Nothing is written"
            )

    def _read(self, owner: str, batch_id: int) -> dict[str, Any]:
        with open(os.path.join(self._lists(owner), f"{batch_id}.json"), encoding="utf-8") as file:
            listed: dict[str, Any] = json.load(file)
        return listed

    def _list(self, owner: str, batch_id: int, listing: dict[str, Any]) -> bool:
        """Return False if the batch has a list already."""
        folder = self._lists(owner)
        os.makedirs(folder, exist_ok=True)
        part = self._write_part(owner, batch_id, listing, listing["write"])
        try:
            # Unlike a rename, a link does not replace an existing list.
            os.link(part, os.path.join(folder, f"{batch_id}.json"))
        except FileExistsError:
            return False
        finally:
            os.unlink(part)
        sync_folder(folder)
        return True

    def _write_part(self, owner: str, batch_id: int, listing: dict[str, Any], write_id: str) -> str:
        """Write and sync a file that is to become a list in one step."""
        part = os.path.join(self._lists(owner), f"{batch_id}-{write_id}.part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump(listing, file)
            file.flush()
            os.fsync(file.fileno())
        return part

    def _finish_moves(self, owner: str) -> None:
        """Complete the moves of the newest list; those of earlier lists were complete before it was written."""
        newest = max(self._batch_ids(owner), default=None)
        if newest is None:
            return
        listed = self._read(owner, newest)
        source = os.path.join(self._folder, OWN_FOLDER, _STAGING, owner, listed["staging"])
        try:
            self._move(source, listed["files"])
        except CommittedFileMissing as error:
            listing = os.path.join(self._lists(owner), f"{newest}.json")
            raise CommittedFileMissing(
                f"{error}. Batch {newest} of {owner} has committed it, so it was deleted or moved since. No later "
                "batch is committed until you put the file back or, if its rows are to stay deleted, remove its name "
                f'from "files" in {listing}; then restart the query. Do not delete that list, or the batch may be '
                "written again"
            ) from error

    def _move(self, source: str, files: Sequence[str]) -> None:
        """Move the files to their final folders; those that are there already stay."""
        folders = set()
        for path in files:
            target = os.path.join(self._folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            try:
                os.rename(os.path.join(source, path), target)
            except FileNotFoundError:
                if not os.path.exists(target):
                    raise CommittedFileMissing(
                        f"{os.path.basename(path)} is neither in {os.path.dirname(target)} nor staged in {source}"
                    ) from None
            folders.add(os.path.dirname(target))
        for folder in folders:
            sync_folder(folder)

    def _clean(self, owner: str) -> None:
        """Remove the staged files of committed batches, and all lists but the newest."""
        newest = max(self._batch_ids(owner))
        staging = os.path.join(self._folder, OWN_FOLDER, _STAGING, owner)
        for name in os.listdir(staging) if os.path.isdir(staging) else ():
            if int(name.split("-")[0]) <= newest:
                shutil.rmtree(os.path.join(staging, name), ignore_errors=True)
        for batch_id in list(self._batch_ids(owner)):
            if batch_id < newest:
                os.unlink(os.path.join(self._lists(owner), f"{batch_id}.json"))

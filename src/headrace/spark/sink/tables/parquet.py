"""A folder of Parquet files: staged beside the others under a name that readers skip, then listed, then moved.

The list of an epoch's files is its commit: it is written whole and appears in one step. Moving the files follows, and
whoever finds a list whose files are not all moved finishes that first. So a kill at any moment leaves every epoch
either without a list, and then its files are never seen, or with one, and then all of them are.
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.spark.sink.identity import Identity
from headrace.spark.sink.tables.epochs import CommittedEpoch, FileReport, is_noted, is_repeat
from headrace.spark.sink.tables.options import TableOptions
from headrace.spark.sink.tables.written_files import sync_folder

OWN_FOLDER = "_headrace"
"""Readers of Parquet folders skip names that begin with an underscore."""

_STAGING, _EPOCHS = "staging", "epochs"
_REPEATS = "repeats"
"""By later runs that found the epoch listed: the write of each that did."""
REPEATS_MAX = 100
"""Runs that are kept so: a query that fails in one batch again and again is started anew each time."""


class ParquetFolder:
    def __init__(self, options: TableOptions) -> None:
        self._folder = options.path

    def staging_folder(self, identity: Identity | None, write_id: str) -> str:
        name = write_id if identity is None else f"{identity.batch_id}-{write_id}"
        owner = "once" if identity is None else identity.owner
        return os.path.join(self._folder, OWN_FOLDER, _STAGING, owner, name)

    def committed(self, owner: str, run: str = "") -> CommittedEpoch | None:
        newest = max(self._epochs(owner), default=None)
        if newest is None:
            return None
        listed = self._read(owner, newest)
        if run in listed.get(_REPEATS, {}):
            return CommittedEpoch(newest, run, listed[_REPEATS][run])
        return CommittedEpoch(newest, listed["run"], listed["write"])

    def note_repeat(self, identity: Identity, write_id: str) -> None:
        found = self.committed(identity.owner, identity.run)
        if not is_repeat(found, identity, write_id) or is_noted(found, identity):
            return
        owner, epoch = identity.owner, identity.batch_id
        listed = self._read(owner, epoch)
        repeats = list(listed.get(_REPEATS, {}).items())[1 - REPEATS_MAX :]  # the oldest go
        listed[_REPEATS] = dict([*repeats, (identity.run, write_id)])
        os.replace(self._write_part(owner, epoch, listed, write_id), os.path.join(self._lists(owner), f"{epoch}.json"))
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
                # Another driver of the same query was faster: what it listed counts.
                self.note_repeat(identity, write_id)
        self._finish_moves(identity.owner)
        self._clean(identity.owner)

    def settle(self, identity: Identity) -> None:
        self._finish_moves(identity.owner)

    def discard(self, reports: Sequence[FileReport]) -> None:
        for report in reports:
            shutil.rmtree(self.staging_folder(report.identity, report.write_id), ignore_errors=True)

    # Lists

    def _lists(self, owner: str) -> str:
        return os.path.join(self._folder, OWN_FOLDER, _EPOCHS, owner)

    def _epochs(self, owner: str) -> Iterator[int]:
        try:
            names = os.listdir(self._lists(owner))
        except FileNotFoundError:
            return
        for name in names:
            if name.endswith(".json"):
                yield int(name.removesuffix(".json"))

    def _read(self, owner: str, epoch: int) -> dict[str, Any]:
        with open(os.path.join(self._lists(owner), f"{epoch}.json"), encoding="utf-8") as file:
            listed: dict[str, Any] = json.load(file)
        return listed

    def _list(self, owner: str, epoch: int, listing: dict[str, Any]) -> bool:
        """False if the epoch has a list already."""
        folder = self._lists(owner)
        os.makedirs(folder, exist_ok=True)
        part = self._write_part(owner, epoch, listing, listing["write"])
        try:
            os.link(part, os.path.join(folder, f"{epoch}.json"))  # unlike a rename, it does not replace another's
        except FileExistsError:
            return False
        finally:
            os.unlink(part)
        sync_folder(folder)
        return True

    def _write_part(self, owner: str, epoch: int, listing: dict[str, Any], write_id: str) -> str:
        """What is to be a list in one step; on the disk when this returns."""
        part = os.path.join(self._lists(owner), f"{epoch}-{write_id}.part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump(listing, file)
            file.flush()
            os.fsync(file.fileno())
        return part

    def _finish_moves(self, owner: str) -> None:
        """Of the newest list: those before it were finished before it was written."""
        newest = max(self._epochs(owner), default=None)
        if newest is None:
            return
        listed = self._read(owner, newest)
        source = os.path.join(self._folder, OWN_FOLDER, _STAGING, owner, listed["staging"])
        self._move(source, listed["files"])

    def _move(self, source: str, files: Sequence[str]) -> None:
        folders = set()
        for path in files:
            target = os.path.join(self._folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            try:
                os.rename(os.path.join(source, path), target)
            except FileNotFoundError:
                assert os.path.exists(target), f"{path} is neither staged nor in its place"
            folders.add(os.path.dirname(target))
        for folder in folders:
            sync_folder(folder)

    def _clean(self, owner: str) -> None:
        """Staged files of epochs that are over, and lists before the newest."""
        newest = max(self._epochs(owner))
        staging = os.path.join(self._folder, OWN_FOLDER, _STAGING, owner)
        for name in os.listdir(staging) if os.path.isdir(staging) else ():
            if int(name.split("-")[0]) <= newest:
                shutil.rmtree(os.path.join(staging, name), ignore_errors=True)
        for epoch in list(self._epochs(owner)):
            if epoch < newest:
                os.unlink(os.path.join(self._lists(owner), f"{epoch}.json"))

"""Finish or undo, at start, a swap of segments that a crash interrupted.

A log file with its swap name decides: its contents and name are on disk, and it holds everything in the offsets it
covers. Before that name exists, the cleaned files are deleted and the old segments are still whole.
"""

from headrace.ports.disk import Disk

from .. import names
from ..files import unlink_if_present
from ..walk import BatchWalk

REPLACED_FILES = (names.LOG, *names.INDEXES)


def finish_swaps(disk: Disk, folder: str) -> None:
    found = disk.list_directory(folder)
    for name in found:
        if name.endswith(names.CLEANED):
            disk.unlink(f"{folder}/{name}")
    decided = [name for name in found if name.endswith(names.LOG + names.SWAP)]
    for name in decided:
        _finish(disk, folder, name)
    for name in disk.list_directory(folder):
        if name.endswith(names.SWAP):
            disk.unlink(f"{folder}/{name}")  # an index of a swap that was not decided
    disk.sync_directory(folder)


def _finish(disk: Disk, folder: str, name: str) -> None:
    live_name = name.removesuffix(names.SWAP)
    part = names.parse_segment_file(live_name)
    if part is None:
        return
    base_offset = part[0]
    end_offset = _end_offset(disk, f"{folder}/{name}", base_offset)
    stem = names.segment_stem(folder, base_offset)
    replaced = _replaced_names(base_offset)
    if not disk.exists(stem + names.TRANSACTION_INDEX + names.SWAP):
        # This index already has its final name. Missing indexes of other kinds are rebuilt; this kind would not be.
        replaced.remove(f"{stem.rpartition('/')[2]}{names.TRANSACTION_INDEX}")
    for other in disk.list_directory(folder):
        if other in replaced or base_offset < _base_offset(other) < end_offset:
            disk.unlink(f"{folder}/{other}")
    disk.sync_directory(folder)
    for suffix in names.INDEXES:
        _rename_if_present(disk, stem + suffix + names.SWAP, stem + suffix)
    disk.sync_directory(folder)
    disk.rename(f"{folder}/{name}", f"{folder}/{live_name}")
    disk.sync_directory(folder)


def _replaced_names(base_offset: int) -> set[str]:
    """Return the file names of the segment at the same offset, without its producer snapshot, which stays valid."""
    return {names.segment_stem("", base_offset)[1:] + suffix for suffix in REPLACED_FILES}


def _base_offset(name: str) -> int:
    """Return the base offset in the name of a live segment file or snapshot; -1 for any other name."""
    stem, _dot, suffix = name.partition(".")
    return int(stem) if f".{suffix}" in (*REPLACED_FILES, names.SNAPSHOT) and stem.isdecimal() else -1


def _end_offset(disk: Disk, path: str, base_offset: int) -> int:
    file = disk.open(path, writable=False)
    try:
        walk = BatchWalk(disk, file, position=0, end=disk.size(file), next_offset=base_offset)
        for _batch in walk:
            pass
        return walk.next_offset
    finally:
        disk.close(file)


def _rename_if_present(disk: Disk, source: str, destination: str) -> None:
    try:
        disk.rename(source, destination)
    except FileNotFoundError:
        return


def remove_cleaned(disk: Disk, folder: str, base_offset: int, unique: str) -> None:
    """Remove the files of a cleaning whose result is not used."""
    stem = names.segment_stem(folder, base_offset)
    for suffix in REPLACED_FILES:
        unlink_if_present(disk, names.cleaned(stem + suffix, unique))

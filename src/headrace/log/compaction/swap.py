"""Putting a cleaned segment in the place of the old ones while readers go on.

The names change in an order that a crash at any point cannot betray: cleaned, swap (from here on it is decided), the
old ones deleted, live; the directory is synced between. The loop keeps the old files open all the while, so a reader
never opens new bytes by an old place; they are unlinked later, like those that retention takes.

An exchange that meets a full device, or no file descriptor, stops where it is; run again, it goes on from there.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from headrace.ports.disk import Disk

from .. import names
from ..files import create_empty
from ..index import IndexFile
from ..segment import Segment
from ..work import NotStarted, Work
from .cleaner import CleanedGroup
from .interrupted import REPLACED_FILES, remove_cleaned
from .plan import source_segments
from .writer import CleanedFiles, IndexState

if TYPE_CHECKING:
    from ..partition_log import PartitionLog


def swap_work(log: "PartitionLog", group: CleanedGroup, *, wall_ms: int) -> Work | None:
    """The exchange, for a helper; None if the log is not as it was, and the cleaned files are of no use.

    When `run` raises an error that passes, run it again before `done` is called.
    """
    files = group.files
    old = source_segments(log, group.sources) if not (log.failed or log.closed) else None
    if files is None or old is None or log.names_generation % 2:
        return None
    new = _segment(log, files, old[-1].created_ms)  # now, so that nothing can fail once the names have changed
    handles = [log.files.handle(file) for segment in old for file in segment.all_files()]
    for handle in handles:
        log.files.pin(handle)
    log.names_generation += 1
    log.being_replaced = tuple(old)
    exchange = Exchange(log.disk, log.path, files, [segment.base_offset for segment in old])

    def done(_result: object, error: BaseException | None) -> None:
        log.names_generation += 1
        log.being_replaced = ()
        for handle in handles:
            log.files.unpin(handle)
        if error is not None and not isinstance(error, NotStarted):
            log.work_failed(error)
        elif error is None and not log.closed:
            log.segments_replaced(old, new)
            log.retire(old, wall_ms + log.config.file_delete_delay_ms)

    return Work(lambda: exchange.run(), done)


def discard_work(log: "PartitionLog", group: CleanedGroup) -> Work | None:
    """Remove cleaned files that came too late."""
    files = group.files
    if files is None:
        return None
    disk, folder = log.disk, log.path

    def done(_result: object, _error: BaseException | None) -> None:
        """What could not be removed, the next start removes."""

    return Work(lambda: remove_cleaned(disk, folder, files.base_offset, files.unique), done)


class Exchange:
    """The steps of an exchange, in order; those that were done are not done again."""

    def __init__(self, disk: Disk, folder: str, files: CleanedFiles, old_bases: list[int]) -> None:
        self._steps = deque(_steps(disk, folder, files, old_bases))

    def run(self) -> None:
        while self._steps:
            self._steps[0]()
            self._steps.popleft()


def _steps(disk: Disk, folder: str, files: CleanedFiles, old_bases: list[int]) -> Iterator[Callable[[], object]]:
    stem = names.segment_stem(folder, files.base_offset)
    sync = partial(disk.sync_directory, folder)
    yield partial(_mark_compacted, disk, folder)
    for suffix in names.INDEXES:
        yield partial(disk.rename, names.cleaned(stem + suffix, files.unique), stem + suffix + names.SWAP)
    yield sync
    yield partial(disk.rename, names.cleaned(stem + names.LOG, files.unique), stem + names.LOG + names.SWAP)
    yield sync
    for base_offset in old_bases:
        gone = REPLACED_FILES if base_offset == files.base_offset else (*REPLACED_FILES, names.SNAPSHOT)
        for suffix in gone:
            yield partial(_retire, disk, names.segment_stem(folder, base_offset) + suffix)
    for suffix in names.INDEXES:
        yield partial(disk.rename, stem + suffix + names.SWAP, stem + suffix)
    yield sync  # a log without its index of aborted transactions would show what they wrote
    yield partial(disk.rename, stem + names.LOG + names.SWAP, stem + names.LOG)
    yield sync


def _mark_compacted(disk: Disk, folder: str) -> None:
    """From now on a missing offset is no sign of damage."""
    if not disk.exists(f"{folder}/{names.COMPACTED}"):
        create_empty(disk, f"{folder}/{names.COMPACTED}")


def _retire(disk: Disk, path: str) -> None:
    if disk.exists(path):
        disk.rename(path, path + names.DELETED)


def _segment(log: "PartitionLog", files: CleanedFiles, created_ms: int) -> Segment:
    segment = Segment(log.files, log.path, files.base_offset, log.config, created_ms)
    segment.size = segment.allocated = files.size
    segment.next_offset = files.end_offset
    segment.first_timestamp = files.first_timestamp
    segment.max_timestamp = files.max_timestamp
    segment.max_timestamp_offset = files.max_timestamp_offset
    segment.bytes_since_index = files.bytes_since_index
    _take_state(segment.index, files.offset_index)
    _take_state(segment.time_index, files.time_index)
    segment.transactions.exists = True
    segment.transactions.stored, segment.transactions.last_offset = files.aborted
    return segment


def _take_state(index: IndexFile, state: IndexState) -> None:
    index.stored, index.last = state

"""Replace old segments with a cleaned one while readers continue.

Files are renamed in an order that survives a crash at any point: cleaned, swap (the decision), old files deleted, live;
the directory is synced between the steps. The loop keeps the old files open meanwhile, so a reader never opens new
bytes at an old position; the old files are unlinked later, as in retention.

A swap that finds a full disk or no file descriptor stops where it is; the next run continues from there.
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
    """Return the swap as work for a helper thread; None if the log has changed and the cleaned files are useless.

    If `run` raises a transient error, run it again before `done` is called.
    """
    files = group.files
    old = source_segments(log, group.sources) if not (log.failed or log.closed) else None
    if files is None or old is None or log.names_generation % 2:
        return None
    new = _segment(log, files, old[-1].created_ms)  # opened now, so that nothing can fail once the names have changed
    handles = [log.files.handle(file) for segment in old for file in segment.all_files()]
    for handle in handles:
        log.files.pin(handle)
    log.names_generation += 1
    log.being_replaced = tuple(old)
    exchange = SegmentSwap(log.disk, log.path, files, [segment.base_offset for segment in old])

    def done(_result: object, error: BaseException | None) -> None:
        log.names_generation += 1
        log.being_replaced = ()
        for handle in handles:
            log.files.unpin(handle)
        if error is not None and not isinstance(error, NotStarted):
            log.work_failed(error)
        elif error is None and not log.closed:
            log.segments_replaced(old, new)
            log.retirement.add(old, wall_ms + log.config.file_delete_delay_ms)

    return Work(lambda: exchange.run(), done)


def discard_work(log: "PartitionLog", group: CleanedGroup) -> Work | None:
    """Return work that removes cleaned files that are no longer useful."""
    files = group.files
    if files is None:
        return None
    disk, folder = log.disk, log.path

    def done(_result: object, _error: BaseException | None) -> None:
        """Ignore files that could not be removed: the next start removes them."""

    return Work(lambda: remove_cleaned(disk, folder, files.base_offset, files.unique), done)


class SegmentSwap:
    """The steps of a swap, in order; completed steps are skipped on a second run."""

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
    yield sync  # a log without its transaction index would return records of aborted transactions
    yield partial(disk.rename, stem + names.LOG + names.SWAP, stem + names.LOG)
    yield sync


def _mark_compacted(disk: Disk, folder: str) -> None:
    """Mark the partition's folder as compacted: from now on a missing offset is no sign of damage."""
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

"""Truncate a log while its node runs: as work for a helper, after which the log continues with what is left on disk.

From the call on nothing is appended, flushed, preallocated, retired or compacted, and nothing may be read. The helper
carries out the steps on disk and opens the log again, by the same functions as a start after a crash; the loop then
exchanges the state.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.ports.disk import FileHandle

from .errors import is_transient
from .loaded_log import LoadedLog, load
from .recovery import Loader
from .truncation_steps import TruncationMark, boundary_at, carry_out, read_mark, write_mark
from .work import NotStarted, Work

if TYPE_CHECKING:
    from .partition_log import PartitionLog


class Truncation:
    def __init__(self, log: "PartitionLog") -> None:
        self._log = log
        self.in_progress = False
        """True from the call that returned the work until it is done; after an error until it is repeated."""
        self.in_flight = False
        self._first_base = -1

    def work(self, offset: int) -> Work | None:
        """Return work that drops everything from `offset` on, and the leader epochs that begin there; None if there is
        nothing to drop. If `offset` is inside a batch, the whole batch is dropped.

        Call it when the log's `has_work` is false. If the work ends with a transient error, the log stays
        `is_truncating` until the call is repeated.
        """
        log = self._log
        starts = log.epochs.starts
        if not self.in_progress and offset >= log.end_offset and not (starts and starts[-1] >= offset):
            return None
        disk, folder, config, recovery_point = log.disk, log.path, log.config, log.recovery_point

        def next_mark(superseded: int) -> TruncationMark:
            end_offset = boundary_at(disk, folder, config, offset)
            return TruncationMark(end_offset, False, min(recovery_point, end_offset), superseded)

        return self._work(next_mark, start_offset=min(log.start_offset, offset), first_base=log.bases[0])

    def restart(self, offset: int) -> Work:
        """Return work that drops everything and begins the log at `offset`; the rules are those of `work`."""

        def next_mark(superseded: int) -> TruncationMark:
            return TruncationMark(offset, True, offset, superseded)

        return self._work(next_mark, start_offset=offset, first_base=offset)

    def _work(self, next_mark: Callable[[int], TruncationMark], *, start_offset: int, first_base: int) -> Work:
        log = self._log
        assert not log.failed, "a log that failed is not truncated"
        assert not log.closed, "a log that is closed is not truncated"
        assert not log.staged, "staged batches must be written before the log is truncated"
        assert self.in_progress or not log.has_work, "the log is truncated once its helpers have ended"
        assert not self.in_flight, "the log is being truncated"
        if not self.in_progress:
            log.names_generation += 1
            self._first_base = first_base
        self.in_progress = self.in_flight = True
        superseded = log.recovery_point
        loader = Loader(
            files=log.files,
            folder=log.path,
            config=log.config,
            recovery_point=log.recovery_point,
            start_offset=start_offset,
            clean=False,
            wall_ms=log.appended_wall_ms,
            uptime=log.uptime,
            high_watermark=0,  # the role knows better, and says so when it asks for the first unstable offset
            live_from=min(first_base, self._first_base),
        )

        def run() -> LoadedLog:
            return _truncated(loader, next_mark, superseded)

        return Work(run, self._done)

    def _done(self, loaded: LoadedLog | None, error: BaseException | None) -> None:
        log = self._log
        self.in_flight = False
        if log.closed:
            self.close()
        elif loaded is not None:
            self._end()
            log.exchange(loaded)
        elif isinstance(error, NotStarted):
            self._end()
        elif error is not None and not is_transient(error):
            log.work_failed(error)

    def close(self) -> None:
        """Stop. If the truncation is not finished, the next start finishes it."""
        if self.in_progress and not self.in_flight:
            self._end()

    def _end(self) -> None:
        self.in_progress = False
        self._log.names_generation += 1

    def cut_files(self, offset: int) -> dict[FileHandle, int]:
        """Return the open segment files that a truncation changes, each with the position from which on it does.

        A connection with an unsent range beyond such a position must be closed before the work starts: it would send
        other bytes than those that its response was made of.
        """
        cut: dict[FileHandle, int] = {}
        for segment in self._log.segments:
            if segment.next_offset > offset and segment.log.handle >= 0:
                found = segment.find(offset) if segment.base_offset < offset else (0, 0, 0)
                if found is not None:
                    cut[segment.log.handle] = found[0]
        return cut

    def is_read_from(self, offset: int) -> bool:
        """Return whether a response is being made of a segment that a truncation to `offset` changes; not for long."""
        return any(segment.next_offset > offset and segment.log.pins for segment in self._log.segments)


def _truncated(loader: Loader, next_mark: Callable[[int], TruncationMark], superseded: int) -> LoadedLog:
    disk, folder, config = loader.disk, loader.folder, loader.config
    before = read_mark(disk, folder)
    if before is not None:
        superseded = max(superseded, before.superseded)
        if not before.finished:
            carry_out(disk, folder, config, before, loader.wall_ms)
    mark = next_mark(superseded)
    write_mark(disk, folder, mark)
    carry_out(disk, folder, config, mark, loader.wall_ms)
    loader.recovery_point = mark.recovery_point
    loader.start_offset = min(loader.start_offset, mark.end_offset)
    return load(loader)

"""A bounded set of open files: files that were not used for a while are closed; files in use stay open.

A handle in a `FileRange` is valid until `close_idle`, which the broker calls between turns; a caller that keeps a range
longer pins its file. So bytes are never sent from a descriptor that has been reused for another file.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from headrace.ports.disk import Disk, FileHandle

from .errors import is_transient

OPEN_FILES_MAX = 8192
SWEEP_FILES_MAX = 64
"""Files that one call of `close_idle` checks, so that a turn stays short."""
PRESSED_SWEEP_FILES_MAX = 1024
"""The same while the process is short of file descriptors."""
PRESSED_FILES_MIN = 16
"""Files that may stay open even when file descriptors are very scarce."""

FAR_ABOVE_SHARE = 4
"""Exceeding the limit by more than one part in this number counts as far above it."""

_CLOSED = FileHandle(-1)


class OpenFile:
    """A file that is opened by name when needed."""

    __slots__ = ("handle", "path", "pins", "retired", "used")

    def __init__(self, path: str) -> None:
        self.path = path
        self.handle = _CLOSED
        self.pins = 0
        self.used = False
        self.retired = False


class OpenFiles:
    def __init__(self, disk: Disk, open_files_max: int = OPEN_FILES_MAX) -> None:
        self.disk = disk
        self.open_files_max = open_files_max
        self._open: dict[FileHandle, OpenFile] = {}
        self._retired: list[OpenFile] = []
        self.far_above = open_files_max + open_files_max // FAR_ABOVE_SHARE
        """Above this number of open files, housekeeping does not wait for its next round."""
        self.is_far_above = False
        self._pressed_max = open_files_max
        """A lower limit, set when the process ran out of descriptors before reaching the configured one; it grows again
        later.
        """

    def __len__(self) -> int:
        return len(self._open)

    @property
    def too_many(self) -> bool:
        """Return whether more files are open than allowed, so that another sweep is due soon."""
        return len(self._open) > self.open_files_max

    def handle(self, file: OpenFile) -> FileHandle:
        """HOT. Return the file's handle, opening the file again if it was closed meanwhile."""
        file.used = True
        if file.handle < 0:
            try:
                file.handle = self.disk.open(file.path)
            except OSError as error:
                if is_transient(error):
                    self._pressed_max = max(len(self._open) * 3 // 4, PRESSED_FILES_MIN)
                raise
            self._open[file.handle] = file
            self.is_far_above = len(self._open) > self.far_above
        return file.handle

    @contextmanager
    def held(self, files: Iterable[OpenFile]) -> Iterator[None]:
        """Protect the files of a log that is being opened, perhaps by a helper thread, from being closed."""
        held = tuple(files)
        for file in held:
            file.pins += 1
        try:
            yield
        finally:
            for file in held:
                file.pins -= 1

    def pin(self, handle: FileHandle) -> None:
        """Keep the file of a range open beyond this turn."""
        self._open[handle].pins += 1

    def unpin(self, handle: FileHandle) -> None:
        file = self._open[handle]
        assert file.pins > 0, f"{file.path} is not pinned"
        file.pins -= 1

    def retire(self, file: OpenFile) -> None:
        """Mark the file as no longer needed: it is closed as soon as no range uses it."""
        if file.handle >= 0 and not file.retired:
            file.retired = True
            self._retired.append(file)

    def close_file(self, file: OpenFile) -> None:
        """Close the file now, because no range holds its handle; the next use opens it again."""
        assert not file.pins, f"{file.path} is pinned"
        self._close(file)

    def close_unused(self, files: Iterable[OpenFile]) -> None:
        """Close the files of a log that was just opened and gave out no range, if too many files are open."""
        if self.too_many:
            for file in files:
                if not file.pins:
                    self._close(file)

    def close_idle(self) -> None:
        """Between turns: close retired files and, above the limit, files that were not used since the last sweep."""
        if self._retired:
            waiting = [file for file in self._retired if file.pins]
            for file in self._retired:
                if not file.pins:
                    self._close(file)
            self._retired = waiting
        if self._pressed_max < self.open_files_max:
            self._sweep(self._pressed_max, PRESSED_SWEEP_FILES_MAX)
            self._pressed_max += self._pressed_max // 8
        elif len(self._open) > self.open_files_max:
            self._sweep(self.open_files_max, SWEEP_FILES_MAX)
            for _ in range(2):  # a file that was used since the last sweep stays open for one more sweep
                if len(self._open) > self.far_above:
                    self._sweep(self.open_files_max, len(self._open))

    def close_all(self) -> None:
        """Close everything at shutdown, when nothing is in flight any more."""
        for file in list(self._open.values()):
            self._close(file)
        self._retired.clear()

    def _sweep(self, files_max: int, looked_at_max: int) -> None:
        # Copied in one step: a helper thread that opens a new partition's files may add to them meanwhile.
        candidates = list(self._open.values())[:looked_at_max]
        for file in candidates:
            if len(self._open) <= files_max:
                return
            if file.used or file.pins:
                file.used = False
                self._open[file.handle] = self._open.pop(file.handle)
            else:
                self._close(file)

    def _close(self, file: OpenFile) -> None:
        if file.handle >= 0:
            del self._open[file.handle]
            self.is_far_above = len(self._open) > self.far_above
            self.disk.close(file.handle)
            file.handle = _CLOSED

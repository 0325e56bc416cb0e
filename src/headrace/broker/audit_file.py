"""The file of the audit log: lines are appended, and a file that has grown to its limit is renamed."""

from collections.abc import Sequence

from headrace.ports.disk import Disk, FileHandle


class AuditFile:
    """Used by one helper at a time. A line is in the file as a whole, or not at all."""

    def __init__(self, disk: Disk, path: str, *, bytes_max: int, files_max: int) -> None:
        self.path = path
        self.lines = 0
        """Lines that were appended since the start."""
        self._disk = disk
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._file: FileHandle | None = None
        self._size = 0

    def append(self, lines: Sequence[bytes], *, sync: bool) -> None:
        """Write the lines, and sync them; after an OSError none of them is there."""
        if self._file is None:
            self._open()
        elif self._size >= self._bytes_max:
            self._rotate()
        assert self._file is not None
        content, written = b"".join(lines), 0
        try:
            while written < len(content):
                written += self._disk.write_vector(self._file, [content[written:]], self._size + written)
            if sync:
                self._disk.data_sync(self._file)
        except OSError:
            self._take_back(written)
            raise
        self._size += written
        self.lines += len(lines)

    def _open(self) -> None:
        folder = self.path.rpartition("/")[0]
        if not self._disk.exists(folder):
            self._disk.make_directory(folder)
            self._disk.sync_directory(folder.rpartition("/")[0] or ("/" if folder.startswith("/") else "."))
        is_new = not self._disk.exists(self.path)
        self._file = self._disk.open(self.path, create=True, private=True)
        if is_new:
            self._disk.sync_directory(folder)
        self._size = self._whole_lines(self._disk.size(self._file))

    def _whole_lines(self, size: int) -> int:
        """Cut off a line that a crash left unfinished, and return the size of the file."""
        assert self._file is not None
        if size == 0 or self._disk.read(self._file, 1, size - 1) == b"\n":
            return size
        begin = max(0, size - self._bytes_max)
        end = begin + self._disk.read(self._file, size - begin, begin).rfind(b"\n") + 1
        self._disk.truncate(self._file, end)
        return end

    def _take_back(self, written: int) -> None:
        """Remove what a failed write has left, so that the lines are not there twice after the next attempt."""
        assert self._file is not None
        try:
            if written:
                self._disk.truncate(self._file, self._size)
        finally:
            self.close()

    def _rotate(self) -> None:
        self.close()
        for number in range(self._files_max - 1, 0, -1):
            older = self.path if number == 1 else f"{self.path}.{number - 1}"
            if self._disk.exists(older):
                self._disk.rename(older, f"{self.path}.{number}")
        self._open()

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            self._disk.close(file)

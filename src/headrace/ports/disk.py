"""The Disk port: the file calls on which the log is built, with POSIX semantics.

Calls raise OSError as the operating system would. Handles are small integers (real file descriptors in production) so
that `Transport.send_range` can use sendfile. Nothing is durable before `data_sync` (contents) and `sync_directory`
(names): the simulator's disk loses exactly what a power cut may lose.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, NewType, Protocol

FileHandle = NewType("FileHandle", int)
Buffer = bytes | bytearray | memoryview


class FileRange(NamedTuple):
    """An opaque run of bytes of an open file, for `Transport.send_range`."""

    file: FileHandle
    position: int
    length: int


class DiskLockHeld(Exception):
    """Another process holds the lock file; `owner` is what it wrote there (its process id), or empty."""

    def __init__(self, path: str, owner: str) -> None:
        super().__init__(
            f"{path} is locked by process {owner or 'unknown'}; stop that process, or use another directory"
        )
        self.path = path
        self.owner = owner


class Disk(Protocol):
    # Open files
    def open(self, path: str, *, create: bool = False, writable: bool = True, private: bool = False) -> FileHandle:
        """Open a file. A `private` one that is created can be read only by the user of the process (mode 0600)."""

    def close(self, file: FileHandle) -> None: ...
    def size(self, file: FileHandle) -> int: ...
    def read(self, file: FileHandle, length: int, position: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""

    def read_into(self, file: FileHandle, buffer: memoryview, position: int) -> int: ...
    def write_vector(self, file: FileHandle, buffers: Sequence[Buffer], position: int) -> int:
        """Call pwritev once: it may write less than given; at most `iov_max` buffers."""

    def truncate(self, file: FileHandle, length: int) -> None: ...
    def allocate(self, file: FileHandle, position: int, length: int) -> None:
        """Preallocate blocks and extend the file (reads return zeros); a no-op where the file system cannot."""

    def data_sync(self, file: FileHandle) -> None: ...
    def is_hot(self, file: FileHandle, position: int, length: int) -> bool:
        """Return whether reading that range would not wait for the device (RWF_NOWAIT probe); True where unknown."""

    def read_ahead(self, file: FileHandle, position: int, length: int) -> None:
        """Wait until that range is in memory, and begin to read what follows it."""

    # Names
    def exists(self, path: str) -> bool: ...
    def is_directory(self, path: str) -> bool: ...
    def list_directory(self, path: str) -> list[str]:
        """Return the names, sorted."""

    def make_directory(self, path: str) -> None:
        """Create the directory with its parents; no error if it exists."""

    def file_size(self, path: str) -> int: ...
    def absolute(self, path: str) -> str:
        """Return the absolute path, which other processes can use."""

    def rename(self, source: str, destination: str) -> None: ...
    def link(self, source: str, destination: str) -> None:
        """Create a hard link: the bytes stay until the last name is removed."""

    def unlink(self, path: str) -> None: ...
    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def sync_directory(self, path: str) -> None: ...
    def boot_id(self) -> str:
        """Return the id of the operating system's boot: while it is the same, unsynced writes are still there."""

    def free_bytes(self, path: str) -> int: ...
    def total_bytes(self, path: str) -> int:
        """Return the size of the file system that holds `path`."""

    def lock(self, path: str) -> FileHandle:
        """Create and lock a lock file for this process, writing the process id into it; DiskLockHeld if it is
        locked.
        """

    iov_max: int


class DataSync:
    """`disk.data_sync(file)` as an operation for the Spawner, which recognises it and may have a faster way.

    The thread that runs it calls `on_failure` at once when it fails, before the loop gets the completion.
    """

    __slots__ = ("disk", "file", "on_failure")

    def __init__(self, disk: Disk, file: FileHandle, on_failure: Callable[[], None]) -> None:
        self.disk = disk
        self.file = file
        self.on_failure = on_failure

    def __call__(self) -> None:
        try:
            self.disk.data_sync(self.file)
        except OSError:
            self.on_failure()
            raise

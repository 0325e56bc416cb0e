"""The Disk port: the file calls the log is built on, with the semantics of POSIX.

Calls raise OSError as the operating system would. Handles are small integers (real file descriptors in production)
so that `Network.send_slice` can use sendfile. Nothing is durable before `data_sync` (contents) and
`sync_directory` (names): the simulator's disk forgets exactly what a power cut may forget.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, NewType, Protocol

FileHandle = NewType("FileHandle", int)
Buffer = bytes | bytearray | memoryview


class Slice(NamedTuple):
    """An opaque run of bytes of an open file, for `Transport.send_slice`."""

    file: FileHandle
    position: int
    length: int


class DiskLockHeld(Exception):
    """Another process holds the lock file; `owner` is what it wrote there (its process id), or empty."""

    def __init__(self, path: str, owner: str) -> None:
        super().__init__(f"{path} is locked by process {owner or 'unknown'}")
        self.path = path
        self.owner = owner


class Disk(Protocol):
    # Open files
    def open(self, path: str, *, create: bool = False, writable: bool = True) -> FileHandle: ...
    def close(self, file: FileHandle) -> None: ...
    def size(self, file: FileHandle) -> int: ...
    def read(self, file: FileHandle, length: int, position: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""

    def read_into(self, file: FileHandle, buffer: memoryview, position: int) -> int: ...
    def write_vector(self, file: FileHandle, buffers: Sequence[Buffer], position: int) -> int:
        """One pwritev: may write less than given; at most `iov_max` buffers."""

    def truncate(self, file: FileHandle, length: int) -> None: ...
    def allocate(self, file: FileHandle, position: int, length: int) -> None:
        """Reserve blocks and extend the file (reads give zeros); a no-op where the file system cannot."""

    def data_sync(self, file: FileHandle) -> None: ...
    def is_hot(self, file: FileHandle, position: int, length: int) -> bool:
        """Whether reading that range would not wait for the device (RWF_NOWAIT probe); True where unknown."""

    def read_ahead(self, file: FileHandle, position: int, length: int) -> None:
        """Wait until that range is in memory, and begin to read what is behind it."""

    # Names
    def exists(self, path: str) -> bool: ...
    def is_directory(self, path: str) -> bool: ...
    def list_directory(self, path: str) -> list[str]:
        """Names, sorted."""

    def make_directory(self, path: str) -> None:
        """With parents; no error if it exists."""

    def file_size(self, path: str) -> int: ...
    def absolute(self, path: str) -> str:
        """The path as another process must say it."""

    def rename(self, source: str, destination: str) -> None: ...
    def link(self, source: str, destination: str) -> None:
        """A second name for a file: its bytes stay until the last name is gone."""

    def unlink(self, path: str) -> None: ...
    def remove_directory(self, path: str) -> None:
        """An empty one."""

    def sync_directory(self, path: str) -> None: ...
    def boot_id(self) -> str:
        """Name the run of the operating system: while it stays the same, what was written and not synced is there."""

    def free_bytes(self, path: str) -> int: ...
    def total_bytes(self, path: str) -> int:
        """The size of the file system that holds `path`."""

    def lock(self, path: str) -> FileHandle:
        """Create and lock a lock file for this process, writing the process id into it; DiskLockHeld if taken."""

    iov_max: int


class DataSync:
    """`disk.data_sync(file)` as an operation for the Spawner, which knows it as such and may have a better way.

    Whoever tries it calls `on_failure` at once when it fails, before the loop is told.
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

"""The operating system's files behind the Disk port.

Calls on the append and read paths are the `os` functions themselves, so that they cost no Python frame.
"""

import errno
import fcntl
import os
import resource
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.ports.disk import Buffer, DiskLockHeld, FileHandle

FILE_MODE = 0o644
PRIVATE_FILE_MODE = 0o600
PROBE_STRIDE_BYTES = 128 * 1024
"""Distance of the probes of `is_hot`: the kernel reads ahead in runs of about this size."""
WAIT_STRIDE_BYTES = 1 << 20
"""Distance at which `read_ahead` waits for a page: pages arrive in the order in which they were requested."""
READ_BEHIND_BYTES = 4 << 20
"""Bytes that `read_ahead` requests after the range it waits for, so that a reader's next requests find them."""
IOV_MAX_FALLBACK = 16
"""The guaranteed value of POSIX where the system does not report one."""
LOCK_OWNER_BYTES_MAX = 32
BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id"

_CANNOT_ALLOCATE = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV, errno.ENOSYS})
_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_PROCESS_ID = os.urandom(16).hex()


def raise_open_file_limit() -> int:
    """Raise this process's limit of open files to the allowed maximum; return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        return soft
    return hard


def _iov_max() -> int:
    try:
        limit = os.sysconf("SC_IOV_MAX")
    except (ValueError, OSError):
        return IOV_MAX_FALLBACK
    return limit if limit > 0 else IOV_MAX_FALLBACK


class RealDisk:
    __slots__ = ("_probe", "iov_max")

    def __init__(self) -> None:
        self.iov_max = _iov_max()
        self._probe = [bytearray(1)]

    if TYPE_CHECKING:

        def write_vector(self, file: FileHandle, buffers: Sequence[Buffer], position: int) -> int: ...
        def truncate(self, file: FileHandle, length: int) -> None: ...
        def data_sync(self, file: FileHandle) -> None: ...
        def close(self, file: FileHandle) -> None: ...
        def exists(self, path: str) -> bool: ...
        def is_directory(self, path: str) -> bool: ...
        def file_size(self, path: str) -> int: ...
        def absolute(self, path: str) -> str: ...
        def rename(self, source: str, destination: str) -> None: ...
        def link(self, source: str, destination: str) -> None: ...
        def unlink(self, path: str) -> None: ...
        def remove_directory(self, path: str) -> None: ...
    else:
        write_vector = staticmethod(os.pwritev)
        truncate = staticmethod(os.ftruncate)
        data_sync = staticmethod(getattr(os, "fdatasync", os.fsync))
        close = staticmethod(os.close)
        exists = staticmethod(os.path.exists)
        is_directory = staticmethod(os.path.isdir)
        absolute = staticmethod(os.path.abspath)
        link = staticmethod(os.link)
        file_size = staticmethod(os.path.getsize)
        rename = staticmethod(os.replace)
        unlink = staticmethod(os.unlink)
        remove_directory = staticmethod(os.rmdir)

    def open(self, path: str, *, create: bool = False, writable: bool = True, private: bool = False) -> FileHandle:
        flags = os.O_RDWR if writable else os.O_RDONLY
        mode = PRIVATE_FILE_MODE if private else FILE_MODE
        return FileHandle(os.open(path, flags | os.O_CREAT if create else flags, mode))

    def size(self, file: FileHandle) -> int:
        return os.fstat(file).st_size

    def read(self, file: FileHandle, length: int, position: int) -> bytes:
        first = os.pread(file, length, position)
        if len(first) == length or not first:
            return first
        return first + self._read_rest(file, length - len(first), position + len(first))

    def _read_rest(self, file: FileHandle, length: int, position: int) -> bytes:
        """Read the rest: a read may stop early (a signal, 2 GiB); only an empty one is the end of the file."""
        parts = []
        while length > 0 and (part := os.pread(file, length, position)):
            parts.append(part)
            position += len(part)
            length -= len(part)
        return b"".join(parts)

    def read_into(self, file: FileHandle, buffer: memoryview, position: int) -> int:
        return os.preadv(file, [buffer], position)

    def allocate(self, file: FileHandle, position: int, length: int) -> None:
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(file, position, length)
        except OSError as error:
            if error.errno not in _CANNOT_ALLOCATE:
                raise

    def is_hot(self, file: FileHandle, position: int, length: int) -> bool:
        if not _NOWAIT or length <= 0:
            return True
        end = position + length
        try:
            for at in range(position, end, PROBE_STRIDE_BYTES):
                os.preadv(file, self._probe, at, _NOWAIT)
            os.preadv(file, self._probe, end - 1, _NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
        return True

    def read_ahead(self, file: FileHandle, position: int, length: int) -> None:
        # Requested, not read: a read would make the system read ahead as far as it likes, and mark a page at which the
        # next reader, the loop, has to continue that for milliseconds.
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file, position, length + READ_BEHIND_BYTES, os.POSIX_FADV_WILLNEED)
        page = [bytearray(1)]
        for at in range(position, position + length, WAIT_STRIDE_BYTES):
            os.preadv(file, page, at)
        os.preadv(file, page, position + length - 1)

    def list_directory(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def sync_directory(self, path: str) -> None:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def boot_id(self) -> str:
        """Return the boot id of Linux; elsewhere every process counts as a separate boot, which is always safe."""
        try:
            with open(BOOT_ID_PATH, encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return _PROCESS_ID

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    def lock(self, path: str) -> FileHandle:
        file = os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        except BlockingIOError as error:
            owner = os.pread(file, LOCK_OWNER_BYTES_MAX, 0).decode("ascii", "replace").strip()
            os.close(file)
            raise DiskLockHeld(path, owner) from error
        except OSError:
            os.close(file)
            raise
        return FileHandle(file)

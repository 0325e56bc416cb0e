"""The Disk port on a dictionary: made and thrown away a thousand times a second, with a real disk's refusals.

It keeps no account of what is durable, as the simulator's disk does; a folder that recovery is to read is made of
whatever bytes an input says.
"""

import errno
import os
from collections.abc import Sequence

from headrace.ports.disk import Buffer, FileHandle
from tools.fuzz.target import Finding

READ_BYTES_MAX = 4 << 20
"""A read beyond this is a length that was believed: the files here are a few kilobytes long."""


class MemoryDisk:
    iov_max = 64

    def __init__(self, files: dict[str, bytearray]) -> None:
        self.files = files
        self._open: dict[int, tuple[bytearray, str]] = {}
        self._next_handle = 3

    # Open files

    def open(self, path: str, *, create: bool = False, writable: bool = True, private: bool = False) -> FileHandle:
        content = self.files.get(path)
        if content is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            content = self.files[path] = bytearray()
        self._next_handle += 1
        self._open[self._next_handle] = (content, path)
        return FileHandle(self._next_handle)

    def close(self, file: FileHandle) -> None:
        del self._open[file]

    @property
    def open_count(self) -> int:
        return len(self._open)

    def size(self, file: FileHandle) -> int:
        return len(self._open[file][0])

    def read(self, file: FileHandle, length: int, position: int) -> bytes:
        if length > READ_BYTES_MAX:
            raise Finding(f"a read of {length} bytes")
        if length < 0 or position < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return bytes(self._open[file][0][position : position + length])

    def read_into(self, file: FileHandle, buffer: memoryview, position: int) -> int:
        content = self.read(file, len(buffer), position)
        buffer[: len(content)] = content
        return len(content)

    def write_vector(self, file: FileHandle, buffers: Sequence[Buffer], position: int) -> int:
        if position < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        content, payload = self._open[file][0], b"".join(buffers)
        if position > len(content):
            self._stretch(content, position)
        content[position : position + len(payload)] = payload
        return len(payload)

    def truncate(self, file: FileHandle, length: int) -> None:
        content = self._open[file][0]
        if length < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if length > len(content):
            self._stretch(content, length)
        del content[length:]

    def _stretch(self, content: bytearray, length: int) -> None:
        if length > READ_BYTES_MAX:
            raise Finding(f"a file of {length} bytes")
        content.extend(bytes(length - len(content)))

    def allocate(self, file: FileHandle, position: int, length: int) -> None:
        content = self._open[file][0]
        if position + length > len(content):
            self._stretch(content, position + length)

    def data_sync(self, file: FileHandle) -> None:
        pass

    def is_hot(self, file: FileHandle, position: int, length: int) -> bool:
        return True

    def read_ahead(self, file: FileHandle, position: int, length: int) -> None:
        """All of it is in memory."""

    # Names

    def exists(self, path: str) -> bool:
        return path in self.files or self.is_directory(path)

    def is_directory(self, path: str) -> bool:
        return any(name.startswith(path + "/") for name in self.files)

    def list_directory(self, path: str) -> list[str]:
        begin = len(path) + 1
        inside = (name[begin:] for name in self.files if name.startswith(path + "/"))
        return sorted({name.partition("/")[0] for name in inside})

    def make_directory(self, path: str) -> None:
        pass

    def file_size(self, path: str) -> int:
        content = self.files.get(path)
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return len(content)

    def absolute(self, path: str) -> str:
        return f"/{path}"

    def link(self, source: str, destination: str) -> None:
        self.files[destination] = self.files[source]

    def rename(self, source: str, destination: str) -> None:
        self.files[destination] = self._take(source)

    def unlink(self, path: str) -> None:
        self._take(path)

    def _take(self, path: str) -> bytearray:
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self.files.pop(path)

    def remove_directory(self, path: str) -> None:
        if self.is_directory(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)

    def sync_directory(self, path: str) -> None:
        pass

    def boot_id(self) -> str:
        return "boot"

    def free_bytes(self, path: str) -> int:
        return 1 << 40

    def total_bytes(self, path: str) -> int:
        return 1 << 40

    def lock(self, path: str) -> FileHandle:
        return self.open(path, create=True)

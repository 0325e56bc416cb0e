"""The Disk port on inodes in memory: at a power cut it loses exactly what a real disk may lose."""

import errno
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, NoReturn

from headrace.ports.disk import Buffer, DiskLockHeld, FileHandle
from headrace.sim.entropy import SeededEntropy
from headrace.sim.faults import DISK_FULL, DiskFaults
from headrace.sim.inodes import DirectoryInode, EntryChange, FileInode, Inode, NameJournal
from headrace.sim.trace import Trace

IOV_BUFFERS_MAX = 64
"""Small on purpose: a log that forgets to split its vectors fails here before it does in production."""
CAPACITY_BYTES = 1 << 30
FIRST_HANDLE = 1_000_000
"""Far above real descriptors, so that the operating system refuses a handle that leaks to it."""
LOCK_OWNER = "1"


class _OpenFile(NamedTuple):
    inode: FileInode
    path: str
    writable: bool


def _error(code: int, path: str = "") -> OSError:
    return OSError(code, os.strerror(code), path) if path else OSError(code, os.strerror(code))


def _steps(path: str) -> list[str]:
    """Split a path; relative and absolute paths start at the same root."""
    return [step for step in path.split("/") if step not in ("", ".")]


class VirtualDisk:
    def __init__(self, entropy: SeededEntropy, trace: Trace, *, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self.iov_max = IOV_BUFFERS_MAX
        self.capacity_bytes = capacity_bytes
        self.faults = DiskFaults(entropy.branch("faults"), trace)
        self.on_operation: Callable[[str, str], None] | None = None
        """Injects latency: called with each operation and its path; it may advance virtual time."""
        self.on_folder_named: Callable[[str], None] = lambda path: None
        """Called with the path of every directory that is created, and with both paths of one that is renamed."""
        self._entropy = entropy
        self._trace = trace
        self._root = DirectoryInode()
        self._names = NameJournal()
        self._open: dict[int, _OpenFile] = {}
        self._next_handle = FIRST_HANDLE
        self._used_bytes = 0
        self._crashes = 0

    # Kills and power cuts

    def kill(self) -> None:
        """End the process (kill -9): its handles and locks are gone; everything it wrote is kept for the next
        process.
        """
        for opened in self._open.values():
            opened.inode.locked_by = None
        self._open.clear()
        self._trace.record("disk kill")

    def crash(self, entropy: SeededEntropy) -> None:
        """Cut the power: unsynced data is kept, lost or torn as `entropy` draws."""
        self._crashes += 1
        self.kill()
        self._names.lose_power(entropy, self._trace)
        self._used_bytes = 0
        left: set[FileInode] = set()
        for inode in self._walk_durable(self._root):
            if isinstance(inode, FileInode) and inode in left:
                inode.name_count += 1
            elif isinstance(inode, FileInode):
                left.add(inode)
                inode.lose_power(entropy, self._trace)
                self._used_bytes += len(inode.content)
            else:
                inode.entries = dict(inode.durable_entries)
        self._trace.record(f"disk crash {self._used_bytes}")

    def _walk_durable(self, directory: DirectoryInode) -> Iterator[Inode]:
        yield directory
        for _, inode in sorted(directory.durable_entries.items()):
            if isinstance(inode, DirectoryInode):
                yield from self._walk_durable(inode)
            else:
                yield inode

    # Open files

    def open(self, path: str, *, create: bool = False, writable: bool = True, private: bool = False) -> FileHandle:
        self._begin("open", path)
        directory, name = self._parent(path)
        inode = directory.entries.get(name)
        if inode is None and create:
            inode = FileInode()
            self._names.change(EntryChange(directory=directory, name=name, inode=inode))
        if inode is None:
            raise _error(errno.ENOENT, path)
        if isinstance(inode, DirectoryInode):
            raise _error(errno.EISDIR, path)
        handle = FileHandle(self._next_handle)
        self._next_handle += 1
        self._open[handle] = _OpenFile(inode, path, writable)
        return handle

    def close(self, file: FileHandle) -> None:
        opened = self._opened(file)
        if opened.inode.locked_by == file:
            opened.inode.locked_by = None
        del self._open[file]

    def size(self, file: FileHandle) -> int:
        return len(self._opened(file).inode.content)

    def read(self, file: FileHandle, length: int, position: int) -> bytes:
        opened = self._opened(file)
        self._begin("read", opened.path)
        return bytes(opened.inode.content[position : position + length])

    def read_into(self, file: FileHandle, buffer: memoryview, position: int) -> int:
        content = self.read(file, len(buffer), position)
        buffer[: len(content)] = content
        return len(content)

    def write_vector(self, file: FileHandle, buffers: Sequence[Buffer], position: int) -> int:
        opened = self._opened_for_writing(file)
        self._begin("write_vector", opened.path)
        if len(buffers) > self.iov_max:
            raise _error(errno.EINVAL)
        payload = b"".join(buffers)
        length = self.faults.drawn_write_length(len(payload))
        room = max(0, len(opened.inode.content) + self._free() - position)
        if length > room:
            if room == 0:
                self._refuse_for_space("write_vector", opened.path)
            length = room
        self._grow(opened.inode, position + length)
        opened.inode.write(payload[:length], position)
        self._trace.record(f"disk write {opened.path} {position} {length} {zlib.crc32(payload[:length]):08x}")
        return length

    def truncate(self, file: FileHandle, length: int) -> None:
        opened = self._opened_for_writing(file)
        self._begin("truncate", opened.path)
        before = len(opened.inode.content)
        if length > before:
            self._grow(opened.inode, length)
        else:
            opened.inode.resize(length)
            self._count(opened.inode, length - before)
        self._trace.record(f"disk truncate {opened.path} {length}")

    def allocate(self, file: FileHandle, position: int, length: int) -> None:
        opened = self._opened_for_writing(file)
        self._begin("allocate", opened.path)
        self._grow(opened.inode, position + length)

    def data_sync(self, file: FileHandle) -> None:
        opened = self._opened(file)
        try:
            self._begin("data_sync", opened.path)
        except OSError:
            opened.inode.forget_dirty()
            self._trace.record(f"disk sync failed {opened.path}")
            raise
        opened.inode.sync()
        self._trace.record(f"disk sync {opened.path} {len(opened.inode.content)}")

    def is_hot(self, file: FileHandle, position: int, length: int) -> bool:
        self._opened(file)
        return not self.faults.draws_cold_read()

    def read_ahead(self, file: FileHandle, position: int, length: int) -> None:
        self._begin("read", self._opened(file).path)

    # Names

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), DirectoryInode)

    def list_directory(self, path: str) -> list[str]:
        self._begin("list_directory", path)
        return sorted(self._directory(path).entries)

    def make_directory(self, path: str) -> None:
        self._begin("make_directory", path)
        directory = self._root
        for step in _steps(path):
            inode = directory.entries.get(step)
            if inode is None:
                self.on_folder_named(path)
                inode = DirectoryInode()
                self._names.change(EntryChange(directory=directory, name=step, inode=inode))
            if not isinstance(inode, DirectoryInode):
                raise _error(errno.EEXIST, path)
            directory = inode

    def file_size(self, path: str) -> int:
        inode = self._existing(path)
        if isinstance(inode, DirectoryInode):
            raise _error(errno.EISDIR, path)
        return len(inode.content)

    def content(self, path: str) -> memoryview:
        """Return what readers of a file see; a checker looks without an event or a fault."""
        inode = self._existing(path)
        assert isinstance(inode, FileInode)
        return memoryview(bytes(inode.content))

    def absolute(self, path: str) -> str:
        return f"/{path.lstrip('/')}"

    def link(self, source: str, destination: str) -> None:
        self._begin("link", source)
        inode = self._existing(source)
        if not isinstance(inode, FileInode):
            raise _error(errno.EPERM, source)
        directory, name = self._parent(destination)
        if name in directory.entries:
            raise _error(errno.EEXIST, destination)
        self._names.change(EntryChange(directory=directory, name=name, inode=inode))
        inode.name_count += 1
        self._trace.record(f"disk link {source} {destination}")

    def rename(self, source: str, destination: str) -> None:
        self._begin("rename", source)
        inode = self._existing(source)
        from_directory, from_name = self._parent(source)
        to_directory, to_name = self._parent(destination)
        replaced = to_directory.entries.get(to_name)
        if replaced is inode:
            return
        self._refuse_replacing(replaced, inode, destination)
        if isinstance(inode, DirectoryInode):
            self.on_folder_named(source)
            self.on_folder_named(destination)
        self._names.change(
            EntryChange(directory=from_directory, name=from_name, inode=None),
            EntryChange(directory=to_directory, name=to_name, inode=inode),
        )
        self._release(replaced)
        self._trace.record(f"disk rename {source} {destination}")

    def _refuse_replacing(self, replaced: Inode | None, inode: Inode, destination: str) -> None:
        if isinstance(replaced, DirectoryInode):
            if not isinstance(inode, DirectoryInode):
                raise _error(errno.EISDIR, destination)
            if replaced.entries:
                raise _error(errno.ENOTEMPTY, destination)
        elif replaced is not None and isinstance(inode, DirectoryInode):
            raise _error(errno.ENOTDIR, destination)

    def unlink(self, path: str) -> None:
        self._begin("unlink", path)
        inode = self._existing(path)
        if isinstance(inode, DirectoryInode):
            raise _error(errno.EISDIR, path)
        directory, name = self._parent(path)
        self._names.change(EntryChange(directory=directory, name=name, inode=None))
        self._release(inode)
        self._trace.record(f"disk unlink {path}")

    def remove_directory(self, path: str) -> None:
        self._begin("remove_directory", path)
        if self._directory(path).entries:
            raise _error(errno.ENOTEMPTY, path)
        directory, name = self._parent(path)
        self._names.change(EntryChange(directory=directory, name=name, inode=None))

    def sync_directory(self, path: str) -> None:
        self._begin("sync_directory", path)
        self._names.sync(self._directory(path))
        self._trace.record(f"disk sync directory {path}")

    def boot_id(self) -> str:
        return f"boot {self._crashes}"

    def free_bytes(self, path: str) -> int:
        self._existing(path)
        return self._free()

    def total_bytes(self, path: str) -> int:
        self._existing(path)
        return self.capacity_bytes

    def lock(self, path: str) -> FileHandle:
        handle = self.open(path, create=True)
        inode = self._open[handle].inode
        if inode.locked_by is not None:
            self.close(handle)
            raise DiskLockHeld(path, bytes(inode.content).decode())
        inode.locked_by = handle
        self._grow(inode, len(LOCK_OWNER))
        inode.write(LOCK_OWNER.encode(), 0)
        return handle

    # Internals

    def _begin(self, operation: str, path: str) -> None:
        if self.on_operation is not None:
            self.on_operation(operation, path)
        self.faults.raise_planned(operation, path)

    def _opened(self, file: FileHandle) -> _OpenFile:
        try:
            return self._open[file]
        except KeyError:
            raise _error(errno.EBADF) from None

    def _opened_for_writing(self, file: FileHandle) -> _OpenFile:
        opened = self._opened(file)
        if not opened.writable:
            raise _error(errno.EBADF, opened.path)
        return opened

    def _find(self, path: str) -> Inode | None:
        inode: Inode | None = self._root
        for step in _steps(path):
            if not isinstance(inode, DirectoryInode):
                return None
            inode = inode.entries.get(step)
        return inode

    def _existing(self, path: str) -> Inode:
        inode = self._find(path)
        if inode is None:
            raise _error(errno.ENOENT, path)
        return inode

    def _directory(self, path: str) -> DirectoryInode:
        inode = self._existing(path)
        if not isinstance(inode, DirectoryInode):
            raise _error(errno.ENOTDIR, path)
        return inode

    def _parent(self, path: str) -> tuple[DirectoryInode, str]:
        steps = _steps(path)
        if not steps:
            raise _error(errno.EISDIR, path)
        return self._directory("/".join(steps[:-1])), steps[-1]

    def _free(self) -> int:
        return max(0, self.capacity_bytes - self._used_bytes)

    def _grow(self, inode: FileInode, length: int) -> None:
        growth = length - len(inode.content)
        if growth <= 0:
            return
        if growth > self._free():
            self._refuse_for_space("grow", "")
        inode.resize(length)
        self._count(inode, growth)

    def _refuse_for_space(self, operation: str, path: str) -> NoReturn:
        self._trace.record(f"disk full {operation} {path}")
        self._trace.count_fault("disk full")
        raise _error(DISK_FULL, path)

    def _count(self, inode: FileInode, growth: int) -> None:
        """Count the used space; a file without a name takes none here, though a real one does until its last handle is
        closed.
        """
        if inode.name_count:
            self._used_bytes += growth

    def _release(self, inode: Inode | None) -> None:
        if isinstance(inode, FileInode):
            if inode.name_count == 1:
                self._count(inode, -len(inode.content))
            inode.name_count -= 1

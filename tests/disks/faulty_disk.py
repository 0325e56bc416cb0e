"""The real disk with points at which a test can end the process or fail a call.

A point is named by the call and the kind of file it is for: `write log`, `rename checkpoint`, `create log` (a roll).
Calls of a name are counted in the order in which they come, from the loop and from helpers alike.
"""

import os
import re
import signal
import threading
from collections import Counter
from typing import Any

from headrace.ports.real.disk import RealDisk

BEFORE, HALF, AFTER = "before", "half", "after"
"""When the process ends: before the call, in the middle of a write, after the call."""

_KINDS = (
    (re.compile(r"__cluster_metadata-0/.*\.checkpoint"), "metadata-snapshot"),
    (re.compile(r"__cluster_metadata-0/.*\.log$"), "metadata-log"),
    (re.compile(r"__cluster_metadata-0"), "metadata-other"),
    (re.compile(r"__consumer_offsets-\d+/.*\.log$"), "offsets-log"),
    (re.compile(r"__transaction_state-\d+/.*\.log$"), "transactions-log"),
    (re.compile(r"\.log\.deleted$"), "deleted"),
    (re.compile(r"\.deleted$"), "deleted-other"),
    (re.compile(r"\.(cleaned|swap)"), "compacted"),
    (re.compile(r"\.log$"), "log"),
    (re.compile(r"\.index$"), "index"),
    (re.compile(r"\.timeindex$"), "time-index"),
    (re.compile(r"\.snapshot(\.tmp)?$"), "producer-snapshot"),
    (re.compile(r"leader-epoch-checkpoint"), "leader-epochs"),
    (re.compile(r"offset-checkpoint"), "checkpoint"),
    (re.compile(r"partition\.metadata"), "partition-metadata"),
    (re.compile(r"meta\.properties"), "meta-properties"),
    (re.compile(r"\.kafka_cleanshutdown"), "clean-shutdown"),
    (re.compile(r"\.headrace-reserve"), "reserve"),
    (re.compile(r"-delete"), "deleted-partition"),
    (re.compile(r"-\d+$"), "partition"),
)


def kind_of(path):
    return next((kind for pattern, kind in _KINDS if pattern.search(path)), "directory")


class FaultyDisk(RealDisk):
    """`point`, `number` and `when` say where the process ends; without a point calls are only counted.

    `error` is a number to raise there instead of ending the process.
    """

    def __init__(self, *, point=None, number=0, when=BEFORE, error=None):
        super().__init__()
        self.counts: Counter[Any] = Counter()
        self._armed = False
        self._point, self._number, self._when, self._error = point, number, when, error
        self._paths = {}
        self._lock = threading.Lock()

    def arm(self):
        """Count from here on."""
        self.counts.clear()
        self._armed = True

    def _reached(self, operation, path):
        """Return whether this call is the one."""
        if not self._armed:
            return False
        name = f"{operation} {kind_of(path)}"
        with self._lock:
            self.counts[name] += 1
            return name == self._point and self.counts[name] == self._number

    def _end(self, path):
        if self._error is not None:
            raise OSError(self._error, os.strerror(self._error), path)
        os.kill(os.getpid(), signal.SIGKILL)

    def _call(self, operation, path, call):
        if not self._reached(operation, path):
            return call()
        if self._when == BEFORE or self._error is not None:
            self._end(path)
        result = call()
        self._end(path)
        return result

    # The calls that change something

    def open(self, path, *, create=False, writable=True, private=False):
        made = create and not os.path.exists(path)
        options = {"create": create, "writable": writable, "private": private}
        file = (
            self._call("create", path, lambda: RealDisk.open(self, path, **options))
            if made
            else super().open(path, **options)
        )
        self._paths[file] = path
        return file

    def write_vector(self, file, buffers, position):
        path = self._paths.get(file, "")
        if not self._reached("write", path):
            return os.pwritev(file, buffers, position)
        if self._when == BEFORE or self._error is not None:
            self._end(path)
        payload = b"".join(buffers)
        os.pwrite(file, payload[: len(payload) // 2] if self._when == HALF else payload, position)
        self._end(path)
        raise AssertionError("the process has ended")

    def truncate(self, file, length):
        self._call("truncate", self._paths.get(file, ""), lambda: os.ftruncate(file, length))

    def allocate(self, file, position, length):
        self._call("allocate", self._paths.get(file, ""), lambda: RealDisk.allocate(self, file, position, length))

    def data_sync(self, file):
        self._call("sync", self._paths.get(file, ""), lambda: os.fdatasync(file))

    def rename(self, source, destination):
        self._call("rename", source, lambda: os.replace(source, destination))

    def unlink(self, path):
        self._call("unlink", path, lambda: os.unlink(path))

    def make_directory(self, path):
        self._call("mkdir", path, lambda: RealDisk.make_directory(self, path))

    def remove_directory(self, path):
        self._call("rmdir", path, lambda: os.rmdir(path))

    def sync_directory(self, path):
        self._call("sync-names", path, lambda: RealDisk.sync_directory(self, path))

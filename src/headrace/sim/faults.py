"""Faults of a virtual disk: errors planned by a test, and random behaviour drawn from the seed."""

import errno
import os
from dataclasses import dataclass

from headrace.sim.entropy import SeededEntropy
from headrace.sim.trace import Trace

DISK_FULL = errno.ENOSPC
DEVICE_ERROR = errno.EIO


@dataclass(slots=True, kw_only=True)
class _Failure:
    operation: str
    path_contains: str
    code: int
    skip: int
    times: int


class DiskFaults:
    """`short_writes_one_in` and `cold_reads_one_in` are rates (0: never); `fail` plans single errors."""

    __slots__ = ("_entropy", "_planned", "_trace", "cold_reads_one_in", "raised", "short_writes_one_in")

    def __init__(self, entropy: SeededEntropy, trace: Trace) -> None:
        self._entropy = entropy
        self._trace = trace
        self.raised: list[tuple[str, str]] = []
        """The operations and paths that failed, for the planner of the fault to read and clear."""
        self._planned: list[_Failure] = []
        self.short_writes_one_in = 0
        self.cold_reads_one_in = 0

    def fail(
        self, operation: str, *, code: int = DEVICE_ERROR, path_contains: str = "", skip: int = 0, times: int = 1
    ) -> None:
        """Let the named Disk call raise `code` on matching paths, `times` times after `skip` successful calls."""
        failure = _Failure(operation=operation, path_contains=path_contains, code=code, skip=skip, times=times)
        self._planned.append(failure)

    @property
    def is_planned(self) -> bool:
        """Return whether an error is still pending."""
        return any(failure.times for failure in self._planned)

    def heal(self) -> None:
        self._planned.clear()

    def raise_planned(self, operation: str, path: str) -> None:
        for failure in self._planned:
            if failure.operation != operation or failure.path_contains not in path or failure.times == 0:
                continue
            if failure.skip:
                failure.skip -= 1
                continue
            failure.times -= 1
            self.raised.append((operation, path))
            self._trace.record(f"disk fails {operation} {path} {errno.errorcode[failure.code]}")
            self._trace.count_fault(f"{errno.errorcode[failure.code]} on {operation}")
            raise OSError(failure.code, os.strerror(failure.code), path)

    def drawn_write_length(self, length: int) -> int:
        if length > 1 and self._entropy.one_in(self.short_writes_one_in):
            self._trace.count_fault("short write")
            return 1 + self._entropy.below(length - 1)
        return length

    def draws_cold_read(self) -> bool:
        if not self._entropy.one_in(self.cold_reads_one_in):
            return False
        self._trace.count_fault("cold read")
        return True

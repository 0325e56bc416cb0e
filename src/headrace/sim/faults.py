"""What goes wrong on a virtual disk: failures put in by a test, and bad habits drawn from the seed."""

import errno
import os
from dataclasses import dataclass

from headrace.sim.entropy import SeededEntropy

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

    __slots__ = ("_entropy", "_planned", "cold_reads_one_in", "short_writes_one_in")

    def __init__(self, entropy: SeededEntropy) -> None:
        self._entropy = entropy
        self._planned: list[_Failure] = []
        self.short_writes_one_in = 0
        self.cold_reads_one_in = 0

    def fail(
        self, operation: str, *, code: int = DEVICE_ERROR, path_contains: str = "", skip: int = 0, times: int = 1
    ) -> None:
        """The named Disk call raises `code` on matching paths, `times` times after `skip` calls that go well."""
        failure = _Failure(operation=operation, path_contains=path_contains, code=code, skip=skip, times=times)
        self._planned.append(failure)

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
            raise OSError(failure.code, os.strerror(failure.code), path)

    def drawn_write_length(self, length: int) -> int:
        if length > 1 and self._entropy.one_in(self.short_writes_one_in):
            return 1 + self._entropy.below(length - 1)
        return length

    def draws_cold_read(self) -> bool:
        return self._entropy.one_in(self.cold_reads_one_in)

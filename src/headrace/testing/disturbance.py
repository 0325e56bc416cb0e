"""A thread that inflicts the planned faults on a cluster, one after the other, until it is stopped."""

import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from headrace.testing.fault_schedule import PlannedFault

STOP_S_MAX = 300
"""The end of a fault, which restarts a broker."""


class Disturbable(Protocol):
    def begin_fault(self, fault: PlannedFault) -> None: ...

    def end_fault(self, fault: PlannedFault) -> None: ...


class Disturbance:
    def __init__(
        self, cluster: Disturbable, faults: Iterator[PlannedFault], begun: Callable[[PlannedFault], None]
    ) -> None:
        """`begun` is called with every fault before it begins."""
        self._cluster = cluster
        self._faults = faults
        self._begun = begun
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="disturbance", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the fault that is under way, and raise what has failed."""
        self._stopped.set()
        self._thread.join(STOP_S_MAX)
        if self._thread.is_alive():
            raise RuntimeError(f"a fault does not end within {STOP_S_MAX} s")
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            for fault in self._faults:
                if self._stopped.wait(fault.after_s):
                    return
                self._begun(fault)
                self._cluster.begin_fault(fault)
                try:
                    self._stopped.wait(fault.duration_s)
                finally:
                    self._cluster.end_fault(fault)
        except BaseException as error:
            self._error = error

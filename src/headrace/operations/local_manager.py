"""A manager beside the local cluster of `headrace up`, in a process that outlives the command which starts it.

Its folder has the catalog, the address and a lock that the process holds. A restart gets the same address.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from headrace.log.names import LOCK
from headrace.operations.errors import OperationError
from headrace.operations.local_cluster import START_SECONDS_MAX, STOP_SECONDS_MAX, hold_ports, owner_of
from headrace.operations.local_nodes import LOOK_SECONDS, last_line
from headrace.ports.real.held_ports import LOOPBACK

PORT_FIRST = 8092
ADDRESS_FILE = "address"
ADDRESS_BYTES_MAX = 100
LOG_START_BYTES_MAX = 1 << 20
READY = b"headrace manager on http://"


class RunningManager(NamedTuple):
    pid: int
    url: str


class LocalManager:
    def __init__(self, cluster_folder: Path) -> None:
        self._folder = cluster_folder.absolute() / "manager"
        self.log = cluster_folder.absolute() / "manager.log"

    @property
    def is_known(self) -> bool:
        """Tell whether the cluster was started with a manager before."""
        return (self._folder / ADDRESS_FILE).exists()

    def up(self, bootstrap: str) -> RunningManager:
        """Start it unless it runs, and return it when it serves requests."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        running = owner_of(str(self._folder))
        if running is not None:
            return RunningManager(running, f"http://{self._address()}")
        with ExitStack() as held:
            address = self._address() or f"{LOOPBACK}:{hold_ports(PORT_FIRST, 1, taken=set(), held=held)}"
            process = self._launched(bootstrap, address)
        (self._folder / ADDRESS_FILE).write_text(address)
        return RunningManager(process.pid, f"http://{address}")

    def down(self) -> bool:
        """Stop it, and return whether it ran."""
        owner = owner_of(str(self._folder))
        if owner is None:
            return False
        os.kill(owner, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS_MAX
        while owner_of(str(self._folder)) == owner:
            if time.monotonic() > deadline:
                raise OperationError(
                    f"the manager (process {owner}) has not stopped within {STOP_SECONDS_MAX} s; see {self.log}"
                )
            time.sleep(LOOK_SECONDS)
        return True

    def _address(self) -> str:
        """Return the address of an earlier start; empty without one."""
        try:
            with (self._folder / ADDRESS_FILE).open() as file:
                return file.read(ADDRESS_BYTES_MAX).strip()
        except FileNotFoundError:
            return ""

    def _launched(self, bootstrap: str, address: str) -> "subprocess.Popen[bytes]":
        command = [
            *(sys.executable, "-m", "headrace", "manager", "--listen", address, "--bootstrap", bootstrap),
            *("--catalog", f"sqlite:///{self._folder / 'catalog.db'}"),
        ]
        lock = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with self.log.open("ab") as log:
                begin = log.tell()
                process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    pass_fds=(lock,),  # It holds the lock as long as it lives.
                )  # fmt: skip
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{process.pid}\n".encode(), 0)
        except BlockingIOError:
            raise OperationError("another headrace up starts the manager: run it again in a moment") from None
        finally:
            os.close(lock)
        self._wait_until_ready(process, begin)
        return process

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]", begin: int) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._has_printed_its_address(begin):
            if process.poll() is not None:
                raise OperationError(f"the manager has ended: {last_line(self.log)}; see {self.log}")
            if time.monotonic() > deadline:
                raise OperationError(f"the manager does not serve after {START_SECONDS_MAX} s; see {self.log}")
            time.sleep(LOOK_SECONDS)

    def _has_printed_its_address(self, begin: int) -> bool:
        with self.log.open("rb") as log:
            log.seek(begin)
            return READY in log.read(LOG_START_BYTES_MAX)

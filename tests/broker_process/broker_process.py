"""`headrace broker` as a process of its own, in a test's folder: started, signalled, killed and started again."""

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

STOP_S_MAX = 60.0
ENDED_BY_KILL = -signal.SIGKILL
LISTENING = re.compile(r"headrace listening on (\S+)")


class BrokerProcess:
    def __init__(
        self,
        data_dir: Path,
        *,
        settings: Mapping[str, str] | None = None,
        listeners: int = 1,
        module: str = "headrace",
    ) -> None:
        self.data_dir = data_dir
        self.settings = {"listeners": "PLAINTEXT://127.0.0.1:0", **(settings or {})}
        """Of the next start."""
        self._listeners = listeners
        self.module = module
        """Arguments of Python: the command, or something around it."""
        self._process: subprocess.Popen[str] | None = None
        self._stderr: IO[str] | None = None
        self.addresses: list[str] = []

    def start(self) -> Self:
        """Returns when every listener has been announced."""
        assert self._process is None or self._process.poll() is not None
        self.forget()
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115  (lives as long as the process)
        settings = {"log.dirs": str(self.data_dir), **self.settings}
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", self.module, "broker"),
                *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")),
            ],
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
        )
        assert self._process.stdout is not None
        self.addresses = []
        for _ in range(self._listeners):
            line = self._process.stdout.readline()
            found = LISTENING.fullmatch(line.rstrip("\n"))
            if found is None:
                self.kill()
                raise AssertionError(f"the broker said {line!r} and {self.complaints()}")
            self.addresses.append(found[1])
        return self

    @property
    def bootstrap_servers(self) -> str:
        return self.addresses[0]

    @property
    def process(self) -> "subprocess.Popen[str]":
        assert self._process is not None, "the broker was not started"
        return self._process

    def complaints(self) -> str:
        """Return what the broker has written to stderr so far."""
        assert self._stderr is not None
        self._stderr.flush()
        self._stderr.seek(0)
        return self._stderr.read()

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout_s: float = STOP_S_MAX) -> int:
        return self.process.wait(timeout_s)

    def stop(self) -> None:
        self.terminate()
        assert self.wait() == 0, self.complaints()

    def kill(self) -> None:
        """As the kernel does when memory is out: no code of the broker runs any more."""
        self.process.kill()
        self.wait()

    def forget(self) -> None:
        """Close what is left of an ended process."""
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        self.forget()

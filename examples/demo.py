"""Start three brokers, send a million messages while one is killed, read them alone and as a group (`make demo`)."""

import argparse
import os
import signal
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import demo_group
from demo_brokers import BROKERS_DEFAULT, Brokers, ClusterBrokers, DemoFailure, running_brokers
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from headrace import Consumer, Producer
from headrace.client import Delivery
from headrace.client.errors import ClientError

MESSAGES_DEFAULT = 1_000_000
GROUP_MESSAGES = 100_000
MESSAGE_BYTES = 100
PARTITIONS = 4
QUIET_MS_MAX = 30_000  # a client that hears nothing for this long has lost its broker
BATCH_BYTES = 128 * 1024
LINGER_MS = 20
REPORT_EVERY = 20_000
BAR_NAME_WIDTH = 15

Report = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One direction of the trip: its time, the share of the brokers, and one checksum per partition."""

    name: str
    seconds: float
    broker_cpu_seconds: float
    checksums: tuple[int, ...]


class Gap:
    """The longest time between two acknowledgements of a producer, of the records of which it hears."""

    EVERY = 500
    """The interval, in records, at which the producer reports an acknowledgement."""

    def __init__(self) -> None:
        self.ms = 0.0
        self._last = 0.0

    def __call__(self, _delivery: Delivery) -> None:
        now = time.monotonic()
        if self._last:
            self.ms = max(self.ms, 1_000 * (now - self._last))
        self._last = now


class Kill:
    """A leader killed when half of the messages have been sent, and what the producer noticed of it."""

    def __init__(self, brokers: ClusterBrokers, topic: str) -> None:
        self.gap = Gap()
        self.victim = 0
        self.brokers = brokers
        self._topic = topic

    def __call__(self) -> None:
        self.gap.ms = 0.0
        self.victim = self.brokers.kill_leader(self._topic)


def value_of(number: int) -> bytes:
    return b"message %012d " % number + b"." * (MESSAGE_BYTES - 21)


def send(bootstrap: str, topic: str, count: int, report: Report, kill: Kill | None = None) -> tuple[int, ...]:
    """Send `count` messages round robin and wait until every one is acknowledged; a leader may be killed half-way."""
    checksums = [0] * PARTITIONS
    with Producer(bootstrap, batch_size=BATCH_BYTES, linger_ms=LINGER_MS) as producer:
        for number in range(count):
            partition, value = number % PARTITIONS, value_of(number)
            checksums[partition] = zlib.crc32(value, checksums[partition])
            watched = kill.gap if kill and number % Gap.EVERY == 0 else None
            producer.send(topic, value, partition=partition, on_delivery=watched)
            if kill and number == count // 2:
                kill()
            if number % REPORT_EVERY == 0:
                report(number)
        producer.flush(timeout_ms=QUIET_MS_MAX)
        refused = producer.metrics()["record-error-total"]
    if refused:
        raise DemoFailure(f"{refused:,.0f} messages were not acknowledged")
    report(count)
    return tuple(checksums)


def read_back(bootstrap: str, topic: str, count: int, report: Report) -> tuple[int, ...]:
    """Read every partition from its beginning until `count` messages have arrived."""
    checksums = [0] * PARTITIONS
    received = reported = 0
    with Consumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        for batch in consumer.batches(timeout_ms=QUIET_MS_MAX):
            values = batch.values()
            checksum = checksums[batch.partition]
            for value in values:
                assert value is not None
                checksum = zlib.crc32(value, checksum)
            checksums[batch.partition] = checksum
            received += len(values)
            if received >= count:
                break
            if received - reported >= REPORT_EVERY:
                reported = received
                report(received)
    if received != count:
        raise DemoFailure(f"{received:,} of {count:,} messages came back")
    report(received)
    return tuple(checksums)


def measured(name: str, brokers: Brokers, leg: Callable[[], tuple[int, ...]]) -> Leg:
    before, started = brokers.cost().cpu_seconds, time.perf_counter()
    checksums = leg()
    seconds = time.perf_counter() - started
    return Leg(name=name, seconds=seconds, broker_cpu_seconds=brokers.cost().cpu_seconds - before, checksums=checksums)


def results(legs: tuple[Leg, ...], count: int, brokers: Brokers) -> Table:
    told = "one broker" if brokers.count == 1 else f"{brokers.count} brokers, {brokers.replicas} replicas"
    cost = brokers.cost()
    table = Table(title=f"{count:,} messages of {MESSAGE_BYTES} bytes, {PARTITIONS} partitions, {told}")
    table.add_column("")
    for heading in ("seconds", "messages/s", "MB/s", "broker CPU", "CPU per message"):
        table.add_column(heading, justify="right")
    for leg in legs:
        rate = count / leg.seconds
        table.add_row(
            leg.name,
            f"{leg.seconds:.2f}",
            f"{rate:,.0f}",
            f"{rate * MESSAGE_BYTES / 1e6:.0f}",
            f"{leg.broker_cpu_seconds:.2f} s",
            f"{leg.broker_cpu_seconds / count * 1e6:.2f} us",
        )
    table.caption = f"broker memory {cost.memory_mb:.0f} MB, at most {cost.memory_peak_mb:.0f} MB"
    return table


def first_message(brokers: Brokers) -> None:
    """The shortest trip: one message there and back."""
    brokers.create_topics("hello", partitions=PARTITIONS)
    at = brokers.bootstrap
    if send(at, "hello", 1, lambda _count: None) != read_back(at, "hello", 1, lambda _count: None):
        raise DemoFailure("the first message came back changed")


def read_as_group(brokers: Brokers, report: Report) -> Table:
    brokers.create_topics("shared", partitions=PARTITIONS)
    half = GROUP_MESSAGES // 2
    ends = [2 * len(range(partition, half, PARTITIONS)) for partition in range(PARTITIONS)]
    send_half = partial(send, brokers.bootstrap, "shared", half, lambda _count: None)
    return demo_group.run(brokers.bootstrap, "shared", ends, send_half, report)


def show(console: Console, folder: Path, count: int, number_of_brokers: int) -> None:
    # `make demo` passes its start time, so that setting up the environment counts.
    began = float(os.environ.get("DEMO_BEGAN", time.time()))
    counted = ", package installation included" if "DEMO_BEGAN" in os.environ else ""
    with running_brokers(folder, number_of_brokers) as brokers:
        at = brokers.bootstrap
        console.print(f"broker at [bold]{at}[/bold], process {', '.join(map(str, brokers.pids))}")
        first_message(brokers)
        console.print(f"first message sent and read [bold]{time.time() - began:.1f} s[/bold] after the start{counted}")
        show_many_messages(console, brokers, count)
        if os.environ.get("KEEP") == "1":
            console.print(f"the broker stays at {at}; Ctrl-C stops it and removes its data")
            signal.pause()


def show_many_messages(console: Console, brokers: Brokers, count: int) -> None:
    """Send and read many messages, then share some in a group of which one member is killed."""
    brokers.create_topics("demo", partitions=PARTITIONS)
    kill = Kill(brokers, "demo") if isinstance(brokers, ClusterBrokers) and brokers.survives_a_kill else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:

        def begin(name: str, total: int) -> Report:
            bar = progress.add_task(f"{name:<{BAR_NAME_WIDTH}}", total=total)  # its clock starts now
            return lambda done: progress.update(bar, completed=done)

        at = brokers.bootstrap
        sent = measured("send", brokers, partial(send, at, "demo", count, begin("send", count), kill))
        if kill:
            show_kill(progress.console, kill)
        read = measured("read", brokers, partial(read_back, at, "demo", count, begin("read", count)))
        group = read_as_group(brokers, begin("read as a group", GROUP_MESSAGES))
    if sent.checksums != read.checksums:
        raise DemoFailure(f"what was read is not what was sent: checksums {sent.checksums} and {read.checksums}")
    console.print(results((sent, read), count, brokers))
    console.print(group)
    killed = ", though a leader was killed" if kill else ""
    console.print(f"every message came back once, in order, with the checksum of what was sent{killed}", style="green")
    console.print("the group read every message, though one of its members died", style="green")


def show_kill(console: Console, kill: Kill) -> None:
    console.print(
        f"broker {kill.victim}, a leader, was killed with -9 half-way: "
        f"[bold]{kill.gap.ms:,.0f} ms[/bold] without an acknowledgement, no error"
    )
    console.print(f"started again, it was in sync after {kill.brokers.bring_back():.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES_DEFAULT, metavar="N")
    parser.add_argument("--brokers", type=int, default=BROKERS_DEFAULT, metavar="N")
    arguments = parser.parse_args()
    console = Console()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the broker is stopped however the demo ends
    try:
        with tempfile.TemporaryDirectory(prefix="headrace-demo-") as folder:
            show(console, Path(folder), arguments.messages, arguments.brokers)
    except (DemoFailure, demo_group.GroupFailure, ClientError) as failure:
        console.print(f"demo failed: {failure}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

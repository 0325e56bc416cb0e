"""Start one broker or several, send a million messages, read them back alone and as a group (`make demo`)."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import demo_group
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from headrace import Admin, Consumer, Producer
from headrace.client import NewTopic
from headrace.client.errors import ClientError
from headrace.testing import EmbeddedCluster

MESSAGES_DEFAULT = 1_000_000
GROUP_MESSAGES = 100_000
MESSAGE_BYTES = 100
PARTITIONS = 4
START_SECONDS_MAX = 20
STOP_SECONDS_MAX = 20
QUIET_MS_MAX = 30_000  # a client that hears nothing for this long has lost its broker
BATCH_BYTES = 128 * 1024
LINGER_MS = 20
REPORT_EVERY = 20_000
BAR_NAME_WIDTH = 15

Report = Callable[[int], None]


class DemoFailure(Exception):
    """An error message for the user of `make demo`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Resources that processes have used so far; zeros where the system has no /proc."""

    cpu_seconds: float = 0.0
    memory_mb: float = 0.0
    memory_peak_mb: float = 0.0


def cost_of(pids: Sequence[int]) -> Cost:
    costs = [_cost_of_process(pid) for pid in pids]
    return Cost(
        cpu_seconds=sum(cost.cpu_seconds for cost in costs),
        memory_mb=sum(cost.memory_mb for cost in costs),
        memory_peak_mb=sum(cost.memory_peak_mb for cost in costs),
    )


def _cost_of_process(pid: int) -> Cost:
    process = Path("/proc") / str(pid)
    if not process.is_dir():
        return Cost()
    ticks = process.joinpath("stat").read_text().rpartition(")")[2].split()[11:13]
    status = dict(line.split(":", 1) for line in process.joinpath("status").read_text().splitlines())
    return Cost(
        cpu_seconds=sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
        memory_mb=int(status["VmRSS"].split()[0]) / 1024,
        memory_peak_mb=int(status["VmHWM"].split()[0]) / 1024,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One direction of the trip: its time, the share of the brokers, and one checksum per partition."""

    name: str
    seconds: float
    broker_cpu_seconds: float
    checksums: tuple[int, ...]


@contextmanager
def running_brokers(folder: Path, count: int) -> Iterator[tuple[list[int], str]]:
    """Run brokers on free loopback ports; yields their process ids and addresses."""
    if count == 1:
        with running_broker(folder) as running:
            yield running
        return
    configs = dict(setting.split("=", 1) for setting in demo_group.BROKER_SETTINGS)
    with EmbeddedCluster(brokers=count, data_dir=str(folder / "data"), config=configs) as cluster:
        yield [cluster.process_id(node_id) for node_id in cluster.node_ids], cluster.bootstrap_servers


@contextmanager
def running_broker(folder: Path) -> Iterator[tuple[list[int], str]]:
    """Run a broker process on a free loopback port; it is stopped by its process id at the end."""
    command = [str(Path(sys.executable).with_name("headrace")), "broker", "--listen", "127.0.0.1:0"]
    for setting in demo_group.BROKER_SETTINGS:
        command += ["--set", setting]
    log = folder / "broker.log"
    with log.open("w") as errors:
        broker = subprocess.Popen(
            [*command, "--data-dir", str(folder / "data")], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert broker.stdout is not None
    try:
        first_line = broker.stdout.readline().strip()
        if not first_line.startswith("headrace listening on "):
            broker.wait(START_SECONDS_MAX)
            raise DemoFailure(f"the broker did not start:\n{first_line}\n{log.read_text()}")
        yield [broker.pid], first_line.rpartition(" ")[2]
    finally:
        broker.terminate()
        try:
            broker.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            broker.kill()
            broker.wait()
        broker.stdout.close()


def create_topic(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=PARTITIONS)])[topic].check(f"topic {topic}")


def value_of(number: int) -> bytes:
    return b"message %012d " % number + b"." * (MESSAGE_BYTES - 21)


def send(bootstrap: str, topic: str, count: int, report: Report) -> tuple[int, ...]:
    """Send `count` messages round robin and wait until the broker has acknowledged every one."""
    checksums = [0] * PARTITIONS
    with Producer(bootstrap, batch_size=BATCH_BYTES, linger_ms=LINGER_MS) as producer:
        for number in range(count):
            partition, value = number % PARTITIONS, value_of(number)
            checksums[partition] = zlib.crc32(value, checksums[partition])
            producer.send(topic, value, partition=partition)
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


def measured(name: str, pids: Sequence[int], leg: Callable[[], tuple[int, ...]]) -> Leg:
    before, started = cost_of(pids).cpu_seconds, time.perf_counter()
    checksums = leg()
    seconds = time.perf_counter() - started
    return Leg(name=name, seconds=seconds, broker_cpu_seconds=cost_of(pids).cpu_seconds - before, checksums=checksums)


def results(legs: tuple[Leg, ...], count: int, pids: Sequence[int]) -> Table:
    brokers = "one broker" if len(pids) == 1 else f"{len(pids)} brokers"
    cost = cost_of(pids)
    table = Table(title=f"{count:,} messages of {MESSAGE_BYTES} bytes, {PARTITIONS} partitions, {brokers}")
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


def first_message(bootstrap: str) -> None:
    """The shortest trip: one message there and back."""
    create_topic(bootstrap, "hello")
    if send(bootstrap, "hello", 1, lambda _count: None) != read_back(bootstrap, "hello", 1, lambda _count: None):
        raise DemoFailure("the first message came back changed")


def read_as_group(bootstrap: str, report: Report) -> Table:
    create_topic(bootstrap, "shared")
    half = GROUP_MESSAGES // 2
    ends = [2 * len(range(partition, half, PARTITIONS)) for partition in range(PARTITIONS)]
    send_half = partial(send, bootstrap, "shared", half, lambda _count: None)
    return demo_group.run(bootstrap, "shared", ends, send_half, report)


def show(console: Console, folder: Path, count: int, brokers: int) -> None:
    # `make demo` passes its start time, so that setting up the environment counts.
    began = float(os.environ.get("DEMO_BEGAN", time.time()))
    counted = ", package installation included" if "DEMO_BEGAN" in os.environ else ""
    with running_brokers(folder, brokers) as (pids, bootstrap):
        console.print(f"broker at [bold]{bootstrap}[/bold], process {', '.join(map(str, pids))}")
        first_message(bootstrap)
        console.print(f"first message sent and read [bold]{time.time() - began:.1f} s[/bold] after the start{counted}")
        show_many_messages(console, pids, bootstrap, count)
        if os.environ.get("KEEP") == "1":
            console.print(f"the broker stays at {bootstrap}; Ctrl-C stops it and removes its data")
            signal.pause()


def show_many_messages(console: Console, pids: Sequence[int], bootstrap: str, count: int) -> None:
    """Send and read many messages, then share some in a group of which one member is killed."""
    create_topic(bootstrap, "demo")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:

        def begin(name: str, total: int) -> Report:
            bar = progress.add_task(f"{name:<{BAR_NAME_WIDTH}}", total=total)  # its clock starts now
            return lambda done: progress.update(bar, completed=done)

        sent = measured("send", pids, partial(send, bootstrap, "demo", count, begin("send", count)))
        read = measured("read", pids, partial(read_back, bootstrap, "demo", count, begin("read", count)))
        group = read_as_group(bootstrap, begin("read as a group", GROUP_MESSAGES))
    if sent.checksums != read.checksums:
        raise DemoFailure(f"what was read is not what was sent: checksums {sent.checksums} and {read.checksums}")
    console.print(results((sent, read), count, pids))
    console.print(group)
    console.print("every message came back once, in order, with the checksum of what was sent", style="green")
    console.print("the group read every message, though one of its members died", style="green")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES_DEFAULT, metavar="N")
    parser.add_argument("--brokers", type=int, default=1, metavar="N")
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

"""Orders through a pipeline on Spark, exactly once, though a leader is killed (the second half of `make demo`)."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo import PARTITIONS
from demo_brokers import BROKERS_DEFAULT, Brokers, ClusterBrokers, DemoFailure, running_brokers
from rich.console import Console
from rich.live import Live
from rich.table import Table

from headrace.bench.orders import DEAD, PIPELINE_FILE, RESULTS, SECONDS, TOPIC
from headrace.cli.failures import Failure
from headrace.cli.pipeline_session import LOG_FILE, started_session
from headrace.client.blocking.whole_topics import read_topic
from headrace.client.errors import ClientError
from headrace.spark.pipelines.claims import RunOutcome
from headrace.spark.pipelines.definition import ParquetSinkDefinition, Pipeline
from headrace.spark.pipelines.definition_reader import read_pipeline
from headrace.spark.pipelines.records import RunState
from headrace.spark.pipelines.runner import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS_DEFAULT = 1_000_000
SEED = 7
BATCHES_SHOWN = 8
LOOK_SECONDS = 0.1
RUN_SECONDS_MAX = 900
CHART_WIDTH = 50
ROOT = Path(__file__).resolve().parent.parent

Batch = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Every term is counted where it ends up, none is computed from others."""

    sent: int
    """Acknowledged by the broker."""
    aggregated: int
    """Added up from the windows in the topic."""
    in_files: int
    """Added up from the windows in the Parquet files."""
    late: int
    """Rows below the watermark of their batch, counted by the query."""
    dead: int
    """Records in the topic of dead letters."""
    by_country: Mapping[str, int]

    @property
    def adds_up(self) -> bool:
        return self.sent == self.aggregated + self.late + self.dead and self.in_files == self.aggregated


class Orders:
    """The process that sends, and how far it is."""

    def __init__(self, bootstrap: str, count: int) -> None:
        self.count, self.acknowledged = count, 0
        command = [sys.executable, "-m", "headrace.bench.orders", bootstrap, TOPIC, str(count), str(SEED)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.acknowledged = int(line)

    @property
    def is_done(self) -> bool:
        status = self._process.poll()
        if status:
            raise DemoFailure(f"the sender of orders ended with status {status}")
        return status == 0

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Outage:
    """A leader of the orders killed when half of them are read, and what the pipeline noticed of it."""

    def __init__(self, brokers: ClusterBrokers) -> None:
        self.victim = 0
        self.gap_ms = 0.0
        """Time from the kill to the end of the next micro-batch."""
        self.usual_ms = 0.0
        """Duration of the micro-batch before."""
        self._brokers = brokers
        self._killed = 0.0
        self._seen = 0

    def look(self, batches: "list[Batch]", count: int) -> None:
        """Kill the leader when it is time, and notice the next micro-batch."""
        if not self.victim and sum(batch["rows"]["read"] for batch in batches) >= count // 2:
            self.usual_ms = 1_000 * batches[-1]["seconds"]
            self._killed, self._seen = time.monotonic(), len(batches)
            self.victim = self._brokers.kill_leader(TOPIC)
        elif self.victim and not self.gap_ms and len(batches) > self._seen:
            self.gap_ms = 1_000 * (time.monotonic() - self._killed)


def demo_definition(folder: Path) -> Pipeline:
    """Return the definition, with all its output files in `folder`."""
    pipeline = read_pipeline(PIPELINE_FILE)
    sinks = tuple(
        replace(sink, path=str(folder / sink.path)) if isinstance(sink, ParquetSinkDefinition) else sink
        for sink in pipeline.sinks
    )
    return replace(pipeline, checkpoint=folder / "checkpoint", sinks=sinks)


def run_pipeline(
    console: Console,
    folder: Path,
    brokers: Brokers,
    count: int,
    make_session: Callable[[], "SparkSession"],
    outage: Outage | None = None,
) -> tuple[Sum, RunOutcome]:
    """Send and process at the same time, until the last window is closed."""
    bootstrap = brokers.bootstrap
    brokers.create_topics(TOPIC, RESULTS, DEAD, partitions=PARTITIONS)
    batches: list[Batch] = []
    runner = Runner(
        pipeline=demo_definition(folder),
        bootstrap=bootstrap,
        make_session=make_session,
        is_once=False,
        on_batch=batches.append,
    )
    outcomes: list[RunOutcome | BaseException] = []
    thread = threading.Thread(target=lambda: outcomes.append(_outcome(runner)), daemon=True)
    orders = Orders(bootstrap, count)
    thread.start()
    try:
        _watch(console, orders, batches, thread, outage)
    finally:
        runner.stop.set()
        thread.join(RUN_SECONDS_MAX)
        orders.close()
    ended = outcomes[0] if outcomes else DemoFailure("the pipeline did not stop")
    if isinstance(ended, BaseException):
        raise ended
    if ended.state is not RunState.STOPPED:
        raise DemoFailure(f"the pipeline failed: {ended.message}")
    return add_up(bootstrap, folder, orders.acknowledged, ended.batches), ended


def _outcome(runner: Runner) -> RunOutcome | BaseException:
    try:
        return runner.run()
    except Exception as error:
        return error


def _watch(
    console: Console, orders: Orders, batches: list[Batch], thread: threading.Thread, outage: Outage | None
) -> None:
    began = time.monotonic()
    with Live(console=console, refresh_per_second=4) as live:
        while not (orders.is_done and _is_complete(batches, orders.count)):
            live.update(progress_table(orders, batches))
            if outage:
                outage.look(batches, orders.count)
            if not thread.is_alive():
                return
            if time.monotonic() - began > RUN_SECONDS_MAX:
                raise DemoFailure(f"the pipeline has not ended in {RUN_SECONDS_MAX} s")
            time.sleep(LOOK_SECONDS)
        live.update(progress_table(orders, batches))
    if not console.is_terminal:
        console.print()  # elsewhere the table is printed once, without an end of its last line


def _is_complete(batches: list[Batch], count: int) -> bool:
    """Return whether everything is read and no window is open: the records that close windows are no orders."""
    read = sum(batch["rows"]["read"] for batch in batches)
    return read == count + PARTITIONS and batches[-1]["state_rows"] == 0


def progress_table(orders: Orders, batches: list[Batch]) -> Table:
    table = Table(title=f"{orders.acknowledged:,} of {orders.count:,} orders sent", expand=False)
    for heading in ("batch", "orders read", "windows written", "late", "dead", "orders/s", "lag", "seconds"):
        table.add_column(heading, justify="right")
    for batch in batches[-BATCHES_SHOWN:]:
        rows = batch["rows"]
        table.add_row(
            str(batch["batch"]),
            *(f"{rows[name]:,}" for name in ("read", "written", "late", "dead")),
            f"{batch['rows_per_second']:,.0f}",
            f"{batch['lag']['records']:,}" if "lag" in batch else "",
            f"{batch['seconds']:.1f}",
        )
    if not batches:
        table.caption = "Spark is starting"
    return table


def add_up(bootstrap: str, folder: Path, sent: int, batches: tuple[Batch, ...]) -> Sum:
    by_country: dict[str, int] = {}
    for value in _read_all(bootstrap, RESULTS):
        window = json.loads(value)
        by_country[window["country"]] = by_country.get(window["country"], 0) + window["orders"]
    files = sorted(file for file in (folder / "files").rglob("*.parquet") if "_headrace" not in file.parts)
    return Sum(
        sent=sent,
        aggregated=sum(by_country.values()),
        in_files=sum(int(count) for file in files for count in _column(file, "orders")),
        late=sum(batch["rows"]["late"] for batch in batches),
        dead=len(_read_all(bootstrap, DEAD)),
        by_country=by_country,
    )


def _column(file: Path, name: str) -> list[Any]:
    import pyarrow.parquet as pq

    return pq.read_table(file, columns=[name])[name].to_pylist()


def _read_all(bootstrap: str, topic: str) -> list[bytes]:
    """Return the values of all committed records."""
    return [record.value for record in read_topic({"bootstrap.servers": bootstrap}, topic)]


def show_results(console: Console, total: Sum, outcome: RunOutcome, seconds: float) -> None:
    table = Table(title="every order is somewhere")
    table.add_column("orders", justify="right")
    table.add_column("")
    table.add_column("counted")
    table.add_row(
        f"{total.aggregated:,}", "aggregated", f"in the windows of topic {RESULTS}, and {total.in_files:,} in Parquet"
    )
    table.add_row(f"{total.late:,}", "late", "by the query, below the watermark of their batch")
    table.add_row(f"{total.dead:,}", "dead", f"in topic {DEAD}, each with its reason", end_section=True)
    table.add_row(f"{total.sent:,}", "sent", "by the broker's acknowledgements")
    console.print(table)
    console.print(country_chart(total.by_country))
    if not total.adds_up:
        raise DemoFailure("this does not add up")
    console.print(
        f"{total.sent:,} = {total.aggregated:,} + {total.late:,} + {total.dead:,}: exactly once, in "
        f"{len(outcome.batches)} batches and {seconds:.1f} s with the start of Spark "
        f"({total.sent / seconds:,.0f} orders/s)",
        style="green",
    )


def show_outage(console: Console, outage: Outage) -> None:
    console.print(
        f"broker {outage.victim}, a leader, was killed with -9 half-way: the next micro-batch was written "
        f"[bold]{outage.gap_ms:,.0f} ms[/bold] later; the one before had taken {outage.usual_ms:,.0f} ms"
    )


def country_chart(by_country: Mapping[str, int]) -> Table:
    table = Table(title=f"orders of {SECONDS // 60} minutes by country", box=None)
    most = max(by_country.values(), default=1)
    for country, count in sorted(by_country.items(), key=lambda pair: -pair[1]):
        table.add_row(country, "\u2588" * max(round(CHART_WIDTH * count / most), 1), f"{count:,}")
    return table


def start_spark(folder: Path) -> "SparkSession":
    """Send the output of Java and the workers to a file: on the terminal it would interrupt the table."""
    try:
        return started_session("demo", None, {}, folder / LOG_FILE)
    except Failure as failure:
        raise DemoFailure(failure.message) from failure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS_DEFAULT, metavar="N")
    parser.add_argument("--brokers", type=int, default=BROKERS_DEFAULT, metavar="N")
    arguments = parser.parse_args()
    count: int = arguments.events
    console = Console()
    try:
        with tempfile.TemporaryDirectory(prefix="headrace-demo-") as name:
            folder = Path(name)
            with running_brokers(folder, arguments.brokers) as brokers:
                shown = PIPELINE_FILE.relative_to(ROOT) if PIPELINE_FILE.is_relative_to(ROOT) else PIPELINE_FILE
                console.print(f"broker at [bold]{brokers.bootstrap}[/bold]; the pipeline is {shown}")
                survives = isinstance(brokers, ClusterBrokers) and brokers.survives_a_kill
                outage = Outage(brokers) if survives else None
                began = time.perf_counter()
                total, outcome = run_pipeline(console, folder, brokers, count, partial(start_spark, folder), outage)
                seconds = time.perf_counter() - began
                if outage:
                    show_outage(console, outage)
                show_results(console, total, outcome, seconds)
                if os.environ.get("KEEP") == "1":
                    at = brokers.bootstrap
                    console.print(f"the broker stays at {at}, files in {folder}; Ctrl-C ends it and removes all")
                    signal.pause()
    except (DemoFailure, ClientError) as failure:
        console.print(f"demo failed: {failure}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`make compat`: clients of many releases, librdkafka's own tests, and docs/compatibility.md from what came out."""

import argparse
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self

from compat.access_rules import run as access_rules
from compat.cases import CASES, Case
from compat.clients import RELEASES, Release
from compat.environments import ROOT, Missing, worker_environment
from compat.go_client.run import run_go_client
from compat.java_client.run import run_java_client
from compat.kafka import apache_kafka
from compat.kafka_tools.run import run_kafka_tools
from compat.librdkafka.outcomes import stored
from compat.librdkafka.run import KAFKA, run_suite
from compat.librdkafka.section import section
from compat.own_client.run import run_own_client
from compat.report import Column, Outcome, complaints, page
from compat.sections import replaced
from compat.segments import dumped_segments
from compat.spark_connector import outcomes as spark_connector
from compat.spark_connector.run import run_spark_connector
from compat.spark_lanes.run import run_spark_lanes
from compat.spark_oldest.run import run_oldest_spark
from headrace.testing import EmbeddedBroker

PAGE = ROOT / "docs" / "compatibility.md"
CASE_S_MAX = 60.0
ALL = "all"
STRICT = {"auto.create.topics.enable": "false"}


class Broker(Protocol):
    @property
    def bootstrap_servers(self) -> str: ...

    def unused_topic_name(self, text: str) -> str: ...

    def create_topic(self, name: str, *, partitions: int, configs: Mapping[str, str] | None) -> object: ...


class Worker:
    """A process that runs cases with one release of a client; killed when it does not answer."""

    def __init__(self, release: Release, bootstrap_servers: str) -> None:
        self._process = subprocess.Popen(
            [str(release.python()), "-m", "compat.worker", release.client, bootstrap_servers],
            cwd=ROOT,
            env=worker_environment(release.classpath()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.version: str = self._answer()["version"]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _answer(self) -> Any:
        """One answer; TimeoutError for none in time, EOFError when the process has ended."""
        try:
            line = self._answers.get(timeout=CASE_S_MAX)
        except queue.Empty:
            raise TimeoutError(f"no answer within {CASE_S_MAX:.0f} s") from None
        if not line:
            raise EOFError("the client's process died")
        return json.loads(line)

    def run(self, case: Case, topic: str, bootstrap_servers: str) -> Outcome:
        assert self._process.stdin is not None
        wanted = {"case": case.name, "topic": topic, "bootstrap_servers": bootstrap_servers}
        self._process.stdin.write(f"{json.dumps(wanted)}\n")
        self._process.stdin.flush()
        answer = self._answer()
        return Outcome(result=answer["outcome"], detail=answer["detail"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def run_release(release: Release, strict: Broker, lenient: Broker) -> Column:
    """All cases; a client that hangs or dies fails the case it was in, and the next one runs in a new process."""
    outcomes: dict[str, Outcome] = {}
    version = release.version
    remaining = sorted(CASES, key=lambda case: case.alone)
    while remaining:
        with Worker(release, strict.bootstrap_servers) as worker:
            version = worker.version
            while remaining:
                case = remaining.pop(0)
                broker = lenient if case.auto_creation else strict
                topic = broker.unused_topic_name(f"{release.title}-{case.name}")
                if not case.without_topic:
                    broker.create_topic(topic, partitions=case.partitions, configs=case.configs)
                try:
                    outcomes[case.name] = worker.run(case, topic, broker.bootstrap_servers)
                except (TimeoutError, EOFError, BrokenPipeError) as lost:
                    outcomes[case.name] = Outcome(result="fail", detail=str(lost))
                    break
                if case.alone:
                    break
    return Column(client=release.client, version=version, outcomes=outcomes, note=release.note, excused=release.fails)


@contextmanager
def brokers(*, kafka: bool) -> Iterator[tuple[Broker, Broker]]:
    """Start one broker with fixed topics, and one that creates topics that its clients name."""
    if kafka:
        with apache_kafka(STRICT) as strict_kafka, apache_kafka({}) as lenient_kafka:
            yield strict_kafka, lenient_kafka
    else:
        with EmbeddedBroker(process=True, config=STRICT) as strict, EmbeddedBroker(process=True) as lenient:
            yield strict, lenient


def run_releases(only: str, *, kafka: bool) -> tuple[list[Column], dict[str, str]]:
    """Return the outcomes, and the releases that could not be run here with the reason."""
    columns: list[Column] = []
    missing: dict[str, str] = {}
    with brokers(kafka=kafka) as (strict, lenient):
        for release in RELEASES:
            if only not in release.title:
                continue
            try:
                column = run_release(release, strict, lenient)
            except (Missing, EOFError, TimeoutError) as lacking:
                missing[release.title] = str(lacking)
                print(f"{release.title}: not run, {lacking}", flush=True)
                continue
            columns.append(column)
            print(f"{column.title}: {column.count('pass')} passed, {column.count('fail')} failed", flush=True)
            for name, outcome in column.failures():
                print(f"  {name}: {outcome.detail}", flush=True)
    return columns, missing


def write_section(text: str) -> None:
    PAGE.write_text(replaced(PAGE.read_text(), text))
    print(f"written: {PAGE.relative_to(ROOT)}")


def run_spark_tests() -> int:
    status = run_spark_connector()
    write_section(spark_connector.section(spark_connector.stored()))
    return status


def run_security_tests() -> int:
    status = access_rules.run_access_rules()
    write_section(access_rules.section(access_rules.stored()))
    return status | run_kafka_tools()


def run_librdkafka_tests(numbers: str, *, only: str) -> int:
    """The exit status: 1 for a test that left the allow-list, or that fails for no known reason."""
    chosen = [] if numbers == ALL else numbers.split(",")
    try:
        found = run_suite(chosen, only=only)
    except Missing as lacking:
        print(f"librdkafka's tests: not run, {lacking}", flush=True)
        return 0
    write_section(section(stored()))
    return told(found)


def run_clients() -> int:
    """Every release, and the page. The exit status: 1 for a failure that is not known to be the client's own."""
    columns, missing = run_releases("", kafka=False)
    try:
        dumps = dumped_segments()
    except Missing as lacking:
        dumps = {}
        missing["Apache Kafka's DumpLogSegments"] = str(lacking)
    for name, outcome in dumps.items():
        print(f"DumpLogSegments, {name}: {outcome.result} {outcome.detail}", flush=True)
    sections = (
        section(stored()),
        spark_connector.section(spark_connector.stored()),
        access_rules.section(access_rules.stored()),
    )
    PAGE.write_text(page(CASES, columns, dumps, missing, sections))
    print(f"written: {PAGE.relative_to(ROOT)}")
    return told(complaints(columns, dumps))


def told(found: Sequence[str]) -> int:
    """Print them; 1 if there are any."""
    for complaint in found:
        print(f"compat: {complaint}", flush=True)
    return 1 if found else 0


def run_spark() -> int:
    return run_spark_tests() | run_spark_lanes() | run_oldest_spark()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only releases whose name contains this; no page")
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka is the only broker; no page of the clients")
    parser.add_argument(
        "--librdkafka",
        nargs="?",
        const=ALL,
        metavar="NUMBERS",
        help="only librdkafka's own tests, all or those of these numbers (0001,0102); their part of the page",
    )
    parser.add_argument("--own-client", action="store_true", help="only Headrace's own client against Apache Kafka")
    parser.add_argument("--go-client", action="store_true", help="only the program for a Go client")
    parser.add_argument("--spark", action="store_true", help="only Spark: its connector, its oldest release, and lanes")
    parser.add_argument("--security", action="store_true", help="only access rules and Kafka's own commands for them")
    options = parser.parse_args(arguments)
    if options.own_client:
        return run_own_client()
    if options.go_client:
        return run_go_client()
    if options.security:
        return run_security_tests()
    if options.spark:
        return run_spark()
    if options.librdkafka:
        return run_librdkafka_tests(options.librdkafka, only=KAFKA if options.kafka else "")
    if options.only or options.kafka:
        columns, _ = run_releases(options.only, kafka=options.kafka)
        return told(complaints(columns, {}))
    suites = run_clients() | run_librdkafka_tests(ALL, only="") | run_own_client()
    return suites | run_java_client() | run_security_tests() | run_go_client() | run_spark()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Targets: one row per figure, and the verdict on a measured figure."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.bench.brokers import HEADRACE, PURE_PYTHON
from headrace.bench.figures import FIGURES, Measurement, figure_text
from headrace.bench.latency import COLD, ROUND_TRIP, ROUND_TRIP_LIBRDKAFKA
from headrace.bench.loads import LARGE, MEDIUM, PIPELINED, PRODUCE_LOADS, SINGLE
from tools.bench.floor import BARE

KAFKA = "kafka"
_VERSION = re.compile(r" \d[\w.]*$")

CONSUME = "consume, 1 KB records"
CONSUME_RAW = "consume, raw fetches"
DURABLE_SINGLE = "sync before ack, 64 x 1"
DURABLE_PIPELINED = "sync before ack, 64 x 8"
START = "start, empty folder"
EMBEDDED = "embedded broker"
CONNECTIONS = "1,000 idle connections"
PARTITIONS = "4,000 partitions"
RECOVERY_SMALL = "kill -9, small batches"
RECOVERY_LARGE = "kill -9, large batches"
METADATA = "metadata, 1,000 topics x 10"
COMMITS = "offset commits, 32 x 1"
TRANSACTIONS = "transactions, 8 producers, 10 records each"
REBALANCE_CLASSIC = "one of 100 members dies, classic protocol"
REBALANCE_CONSUMER = "one of 100 members dies, KIP-848"
CLEANING = "cleaning, plain records of 1 KB"
BESIDE_COMPACTION = "paced producer beside compaction"


HELPER_TIMES_MAX = 1.05
"""Limit for the compiled helpers, which must not cost more than the Python code; rounds differ by some percent."""


class Target(NamedTuple):
    load: str
    figure: str
    at_most: bool
    bound: float
    against: str = ""
    """The reference that the bound is a multiple of: a subject, or another figure of ours; empty for none."""

    subject: str = HEADRACE
    """The subject that is judged: one of our variants."""

    @property
    def name(self) -> str:
        return self.load if self.subject == HEADRACE else f"{self.load}: {self.subject}"

    def text(self) -> str:
        relation = "<=" if self.at_most else ">="
        if not self.against:
            return f"{relation} {figure_text(self.figure, self.bound)}"
        against = FIGURES[self.against].label if self.against in FIGURES else self.against
        return f"{relation} {self.bound:g} x {against}"


TARGETS = (
    Target(SINGLE.name, "cpu_us_per_request", True, 0.5, KAFKA),
    Target(SINGLE.name, "requests_per_second", False, 1.4, KAFKA),
    Target(PIPELINED.name, "cpu_us_per_request", True, 0.25, KAFKA),
    Target(PIPELINED.name, "requests_per_second", False, 3.0, KAFKA),
    Target(MEDIUM.name, "cpu_us_per_request", True, 0.3, KAFKA),
    Target(MEDIUM.name, "megabytes_per_second", False, 2.0, KAFKA),
    Target(LARGE.name, "cpu_seconds_per_gigabyte", True, 0.8, KAFKA),
    Target(LARGE.name, "cpu_seconds_per_gigabyte", True, 1.5, BARE),
    *(Target(load.name, "cpu_us_per_request", True, HELPER_TIMES_MAX, PURE_PYTHON) for load in PRODUCE_LOADS),
    Target(CONSUME, "cpu_seconds_per_gigabyte", True, 1.3, KAFKA),
    Target(COLD, "p99_ratio", True, 2.0),
    Target(ROUND_TRIP, "p50_us", True, 0.7, KAFKA),
    Target(ROUND_TRIP, "p99_us", True, 0.25, KAFKA),
    Target(ROUND_TRIP_LIBRDKAFKA, "p50_us", True, 0.7, KAFKA),
    Target(ROUND_TRIP_LIBRDKAFKA, "p99_us", True, 0.25, KAFKA),
    Target(DURABLE_SINGLE, "requests_per_sync", False, 5.0),
    Target(DURABLE_PIPELINED, "requests_per_sync", False, 10.0),
    Target(START, "metadata_seconds", True, 0.35),
    Target(EMBEDDED, "import_ms", True, 150.0),
    Target(EMBEDDED, "embedded_ms", True, 50.0),
    Target(START, "idle_megabytes", True, 45.0),
    Target(CONNECTIONS, "kilobytes_per_connection", True, 8.0),
    Target(PARTITIONS, "grown_megabytes", True, 120.0),
    Target(PARTITIONS, "ready_seconds", True, 4.0),
    Target(RECOVERY_SMALL, "seconds", True, 1.0, "allowed_seconds"),
    Target(RECOVERY_LARGE, "seconds", True, 1.0, "allowed_seconds"),
    Target(METADATA, "cpu_us_per_request", True, 1.0, KAFKA),
    Target(COMMITS, "requests_per_second", False, 1.0, KAFKA),
    Target(COMMITS, "cpu_us_per_request", True, 0.7, KAFKA),
    Target(TRANSACTIONS, "transactions_per_second", False, 1_000.0),
    Target(TRANSACTIONS, "transactions_per_second", False, 1.0, KAFKA),
    Target(TRANSACTIONS, "cpu_us_per_transaction", True, 1.0, KAFKA),
    Target(REBALANCE_CLASSIC, "stable_seconds", True, 1.5),
    Target(REBALANCE_CLASSIC, "cpu_ms", True, 100.0),
    Target(REBALANCE_CONSUMER, "stable_seconds", True, 1.5),
    Target(REBALANCE_CONSUMER, "cpu_ms", True, 100.0),
    Target(BESIDE_COMPACTION, "loop_p99_ms", True, 5.0),
)


class Verdict(NamedTuple):
    target: Target
    ours: float | None
    theirs: float | None
    reached: bool | None
    """None if one of the two was not measured."""

    @property
    def ratio(self) -> float | None:
        if self.ours is None or not self.theirs:
            return None
        return self.ours / self.theirs

    @property
    def word(self) -> str:
        return "not measured" if self.reached is None else "reached" if self.reached else "MISSED"


def verdicts(measurements: Iterable[Measurement], targets: Iterable[Target] = TARGETS) -> list[Verdict]:
    found = {(one.load, _kind(one.subject)): one for one in measurements}
    return [_verdict(target, found) for target in targets]


def _kind(subject: str) -> str:
    """Return the name without its version: `kafka` for `kafka 4.3.1`."""
    return _VERSION.sub("", subject)


def _verdict(target: Target, found: Mapping[tuple[str, str], Measurement]) -> Verdict:
    own = found.get((target.load, target.subject))
    ours = _median(own, target.figure)
    if not target.against:
        theirs: float | None = None
        allowed: float | None = target.bound
    else:
        if target.against in FIGURES:
            theirs = _median(own, target.against)
        else:
            theirs = _median(found.get((target.load, target.against)), target.figure)
        allowed = None if theirs is None else theirs * target.bound
    if ours is None or allowed is None:
        return Verdict(target, ours, theirs, None)
    return Verdict(target, ours, theirs, ours <= allowed if target.at_most else ours >= allowed)


def _median(measurement: Measurement | None, figure: str) -> float | None:
    if measurement is None or not measurement.values(figure):
        return None
    return measurement.median(figure)

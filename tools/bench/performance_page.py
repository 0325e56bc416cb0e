"""The measured part of docs/performance.md (machine and targets) and, beside the page, every round as JSON.

The rest of the page is kept.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from headrace.bench.charts import bar_lines
from headrace.bench.figures import FIGURES, Measurement, as_json, figure_text, median_text
from tools.bench.pictures import picture
from tools.bench.targets import Verdict

VERDICT_COLUMNS = ("load", "figure", "headrace", "reference", "ratio", "target", "verdict")
_NEW_PAGE = "# Performance\n"


class Medians(Enum):
    """The medians that a section shows below the figures that have a target; the file of the rounds has all of them."""

    NONE = "none"
    OF_OTHER_LOADS = "of the loads without a target"
    ALL = "all"


class Section(NamedTuple):
    """The part of the page that a command writes."""

    command: str
    picture: Path
    rounds: Path
    """The JSON file with every round, relative to the page."""
    about: str
    """A sentence that describes the figures."""
    medians: Medians = Medians.NONE

    @property
    def begin(self) -> str:
        return f"<!-- Written by `{self.command}`, down to the end mark: change the tool, not the table. -->"

    @property
    def end(self) -> str:
        return f"<!-- End of what `{self.command}` wrote. -->"


COMPARE = Section(
    command="python -m tools.bench compare",
    picture=Path("images") / "performance.svg",
    rounds=Path("performance") / "compare.json",
    about="Medians of interleaved rounds. CPU is user and system time of the broker's processes.",
)
SPARK = Section(
    command="python -m tools.bench spark",
    picture=Path("images") / "performance-spark.svg",
    rounds=Path("performance") / "spark.json",
    about="Medians of interleaved rounds. CPU is user and system time of Spark, its Python workers and the broker.",
)
PIPELINE = Section(
    command="python -m tools.bench pipeline",
    picture=Path("images") / "performance-pipeline.svg",
    rounds=Path("performance") / "pipeline.json",
    about="CPU is user and system time of the command, Spark and its Python workers; broker and producer share the "
    "machine with them. A wait is from an order's arrival at the broker until its batch is written, counted in the "
    "second half of the stream; the lag is the age of the oldest order that is not read when a batch ends.",
    medians=Medians.ALL,
)
CLUSTER = Section(
    command="python -m tools.bench cluster",
    picture=Path("images") / "performance-cluster.svg",
    rounds=Path("performance") / "cluster.json",
    about="Medians of rounds; the subjects of a load take turns. CPU is user and system time of all processes of a "
    "broker. A start is the time of `headrace up`, which ends when all brokers are registered and three of them vote; "
    "the memory is that of the largest broker. The load generators share the cores with the brokers.",
    medians=Medians.OF_OTHER_LOADS,
)
REPLICAS = Section(
    command="python -m tools.bench replicas",
    picture=Path("images") / "performance-replicas.svg",
    rounds=Path("performance") / "replicas.json",
    about="Three brokers of each kind on one machine, three replicas, `min.insync.replicas=2`; medians of interleaved "
    "rounds. CPU is user and system time of all three brokers. After each round the files of every replica were read: "
    "all checksums were right, and all replicas ended where the acknowledgements said. The load generators share the "
    "cores with the brokers.",
    medians=Medians.OF_OTHER_LOADS,
)

FAILOVER = Section(
    command="python -m tools.bench failover",
    picture=Path("images") / "performance-failover.svg",
    rounds=Path("performance") / "failover.json",
    about="Three brokers, three replicas, min.insync.replicas=2, acks=all. A gap is the longest time between two "
    "acknowledgements of a partition around the fault, so that it includes the interval of the producer; that of a "
    "group ends with a committed offset, and that of new clients with the first record of a client that began after "
    "the pause. A client with other timeouts keeps what it sent to a paused leader until its own timeout. Brokers, "
    "clients and the restarts share the cores.",
)


def write_page(
    page: Path,
    section: Section,
    *,
    command: str,
    day: str,
    machine: Mapping[str, str],
    measurements: Sequence[Measurement],
    verdicts: Sequence[Verdict],
    failures: Mapping[str, str],
) -> None:
    """Replace the part of an earlier run, and the picture and the rounds beside the page."""
    text = page.read_text() if page.exists() else _NEW_PAGE
    if section.begin not in text or section.end not in text:
        text = f"{text.rstrip()}\n\n{section.begin}\n{section.end}\n"
    before, _, rest = text.partition(section.begin)
    _, _, after = rest.partition(section.end)
    written = "\n".join(measured_part(section, command, day, machine, measurements, verdicts, failures))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"{before}{section.begin}\n{written}\n{section.end}{after}")
    drawing = page.parent / section.picture
    drawing.parent.mkdir(parents=True, exist_ok=True)
    drawing.write_text(picture(bar_lines(measurements), title=command))
    rounds = page.parent / section.rounds
    rounds.parent.mkdir(parents=True, exist_ok=True)
    rounds.write_text(rounds_text(command, day, machine, measurements, verdicts, failures))


def measured_part(
    section: Section,
    command: str,
    day: str,
    machine: Mapping[str, str],
    measurements: Sequence[Measurement],
    verdicts: Sequence[Verdict],
    failures: Mapping[str, str],
) -> Iterator[str]:
    yield ""
    yield f"Measured on {day} by `{command}` ({'; '.join(f'{name}: {text}' for name, text in machine.items())})."
    yield section.about
    yield ""
    yield from _table(VERDICT_COLUMNS, map(verdict_row, verdicts))
    for name, reason in failures.items():
        yield ""
        yield f"Not measured: {name}. {reason.splitlines()[0]}"
    yield ""
    if shown := _shown(section.medians, measurements, verdicts):
        yield from _table(("load", "subject", "figure", "median"), _median_rows(shown))
        yield ""
    yield f"The same [as bars]({section.picture.as_posix()}), and [every round]({section.rounds.as_posix()})."
    yield ""


def rounds_text(
    command: str,
    day: str,
    machine: Mapping[str, str],
    measurements: Sequence[Measurement],
    verdicts: Sequence[Verdict],
    failures: Mapping[str, str],
) -> str:
    """Return all figures of all rounds as JSON, one measurement or verdict per line, so that a diff is readable."""
    rows = (dict(zip(VERDICT_COLUMNS, verdict_row(verdict), strict=True)) for verdict in verdicts)
    members = {
        "command": _compact(command),
        "day": _compact(day),
        "machine": _compact(dict(machine)),
        "measurements": _lines(map(as_json, measurements)),
        "verdicts": _lines(rows),
        "failures": _compact(dict(failures)),
    }
    return "{\n" + ",\n".join(f'  "{name}": {text}' for name, text in members.items()) + "\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(values: Iterable[object]) -> str:
    return "[\n" + ",\n".join(f"    {_compact(value)}" for value in values) + "\n  ]"


def verdict_row(verdict: Verdict) -> tuple[str, ...]:
    target = verdict.target
    figure = target.figure
    against = FIGURES[target.against].label if target.against in FIGURES else target.against
    return (
        target.name,
        FIGURES[figure].label,
        "" if verdict.ours is None else figure_text(figure, verdict.ours),
        "" if verdict.theirs is None else f"{figure_text(figure, verdict.theirs)} ({against})",
        "" if verdict.ratio is None else f"{verdict.ratio:.2f}",
        target.text(),
        verdict.word,
    )


def _shown(medians: Medians, measurements: Sequence[Measurement], verdicts: Sequence[Verdict]) -> Sequence[Measurement]:
    if medians is Medians.NONE:
        return ()
    with_target = set() if medians is Medians.ALL else {verdict.target.load for verdict in verdicts}
    return [one for one in measurements if one.load not in with_target]


def _median_rows(measurements: Iterable[Measurement]) -> Iterator[tuple[str, ...]]:
    for one in measurements:
        for figure in one.figures():
            yield one.load, one.subject, FIGURES[figure].label, median_text(one, figure)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"

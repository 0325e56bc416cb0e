"""The figures of docs/reliability.md, written between marks from what the record holds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from headrace.sim.report import MET_PERCENT_MIN, SEEDS_TO_JUDGE_MIN, faults_of
from headrace.sim.run import SCENARIOS
from tools.chaos.campaigns import (
    CONTROLLER_KILLS,
    KILLS,
    KNOWN_FAULTS,
    LONG_PAUSE_S,
    LONG_PAUSES,
    OUTAGE_S,
    PAUSE_S,
    PAUSES,
    REPLICA_FAULTS,
    SIMULATORS,
    SPARK_KILLS,
    SPARK_OUTAGES,
    SWEEP,
    TRIES,
    fault_name,
    fuzz_goals,
    fuzz_name,
    replica_campaign,
)
from tools.chaos.record import ROOT, Progress, Record
from tools.fuzz.catalog import FIRST

PAGE = ROOT / "docs" / "reliability.md"


def write(record: Record, page: Path = PAGE) -> None:
    text = page.read_text()
    for name, tell in SECTIONS.items():
        text = _replaced(text, name, tell(record))
    page.write_text(text)


def _replaced(text: str, name: str, content: str) -> str:
    begin, end = f"<!-- {name}, written by make chaos -->", f"<!-- end of {name} -->"
    before, found, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    assert found, f"the page has no place for {name}"
    assert found_end, f"the place for {name} has no end"
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"


def rare(record: Record) -> list[str]:
    """Faults that too few seeds of a scenario met."""
    found = []
    for scenario, name in SIMULATORS.items():
        progress = record.of(name)
        if progress.done >= SEEDS_TO_JUDGE_MIN:
            enough = progress.done * MET_PERCENT_MIN / 100
            met = {fault: progress.number(f"seeds with {fault}") for fault in faults_of([SCENARIOS[scenario]])}
            found += [f"{fault} in {scenario}" for fault, seeds in met.items() if seeds < enough]
    return found


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _on_code(progress: Progress) -> str:
    if not progress.codes:
        return ""
    first, last = progress.codes[0], progress.codes[-1]
    return f"on commit {first}" if first == last else f"on commits {first} to {last}"


def _simulator(record: Record) -> str:
    played = {scenario: record.of(name) for scenario, name in SIMULATORS.items() if record.of(name).done}
    lines = []
    for scenario, progress in played.items():
        lines.append(
            f"* {scenario}: {progress.done:,} seeds {_on_code(progress)}, "
            f"{len(progress.failures)} slices of them failed, "
            f"{len(progress.values('too easy'))} too easy to count;\n  "
            f"{progress.number('milliminutes') / 60_000:,.0f} virtual hours, {progress.number('starts'):,} starts, "
            f"{progress.number('progress'):,} {SCENARIOS[scenario].progress_unit}, "
            f"{progress.seconds / 60:,.0f} minutes of one core."
        )
    kinds = dict.fromkeys(SCENARIOS[scenario].common_faults for scenario in played)
    tables = [
        _met_table({scenario: done for scenario, done in played.items() if SCENARIOS[scenario].common_faults == kind})
        for kind in kinds
    ]
    return "\n".join(lines) + "\n\n" + "\n\n".join(tables)


def _met_table(played: Mapping[str, Progress]) -> str:
    """Tell how many seeds met each fault, of scenarios that have the same nemesis."""
    every = dict.fromkeys(fault for scenario in played for fault in faults_of([SCENARIOS[scenario]]))
    rows = [
        (
            fault,
            *(
                _met(progress, fault) if fault in faults_of([SCENARIOS[scenario]]) else ""
                for scenario, progress in played.items()
            ),
        )
        for fault in every
    ]
    return _table(("seeds that met", *played), rows)


def _met(progress: Progress, fault: str) -> str:
    met = progress.number(f"seeds with {fault}")
    return f"{met:,} ({100 * met / progress.done:.0f} %)"


def _known_faults(record: Record) -> str:
    rows = []
    for scenario, put_in in KNOWN_FAULTS:
        progress = record.of(fault_name(scenario, put_in))
        seeds = sorted(int(count) for count in progress.values("seeds"))
        name = put_in.__name__.replace("_", " ")
        found = (seeds[len(seeds) // 2], seeds[-1]) if seeds else ("", "")
        rows.append((name, scenario, len(seeds), *found, _on_code(progress)))
    text = (
        "Brokers with a known fault put in, and how many seeds it took until a promise was seen broken "
        f"(up to {TRIES} tries, beginning at other seeds):"
    )
    return f"{text}\n\n{_table(('known fault', 'scenario', 'tries', 'seeds: median', 'most', 'code'), rows)}"


def _processes(record: Record) -> str:
    kills, swept = record.of(KILLS), record.of(SWEEP)
    points = set(swept.values("points"))
    rows = [
        (
            "killed at a random moment of the load",
            f"{kills.number('kills'):,} kills",
            f"{kills.number('acknowledged'):,}",
            _on_code(kills),
        ),
        (
            f"ended at a named point, before, in or after the call ({len(points)} points)",
            f"{swept.number('ends'):,} ends, {swept.number('not met'):,} not met by the load",
            f"{swept.number('acknowledged'):,}",
            _on_code(swept),
        ),
        *(
            (
                "stopped for {:g} to {:g} s (SIGSTOP)".format(*seconds),
                f"{paused.number('pauses'):,} pauses",
                f"{paused.number('acknowledged'):,}",
                _on_code(paused),
            )
            for paused, seconds in ((record.of(PAUSES), PAUSE_S), (record.of(LONG_PAUSES), LONG_PAUSE_S))
        ),
    ]
    controllers = record.of(CONTROLLER_KILLS)
    if controllers.done:
        again, gaps = (sorted(map(int, controllers.values(f"{name} ms"))) for name in ("created again", "longest gap"))
        rows.append(
            (
                "active controller of three brokers killed; CreateTopics works again after "
                f"{_share(again, 50)} ms (p50), {_share(again, 95)} ms (p95), {again[-1]} ms (most); another leader "
                f"acknowledged with a gap of at most {_share(gaps, 95)} ms (p95), {gaps[-1]} ms (most)",
                f"{controllers.number('kills'):,} kills",
                f"{controllers.number('acknowledged'):,} records",
                _on_code(controllers),
            )
        )
    spark = record.of(SPARK_KILLS)
    if spark.done:
        rows.append(
            (
                "Spark's Python worker, its driver or the broker killed at a named point of a batch commit",
                f"{spark.number('kills'):,} kills ({spark.number('worker')} of workers, {spark.number('driver')} of "
                f"drivers, {spark.number('broker')} of brokers)",
                f"{spark.number('rows'):,} rows",
                _on_code(spark),
            )
        )
    away = record.of(SPARK_OUTAGES)
    if away.done:
        rows.append(
            (
                f"killed under a query of Spark from topic to topic, and away for {OUTAGE_S:g} s",
                f"{away.number('outages'):,} times",
                f"{away.number('rows'):,} rows",
                _on_code(away),
            )
        )
    return _table(("broker process under load", "times", "batches acknowledged, none lost or doubled", "code"), rows)


def _replicas(record: Record) -> str:
    rows = []
    for fault, (goal, _) in REPLICA_FAULTS.items():
        progress = record.of(replica_campaign(fault))
        gaps = sorted(map(int, progress.values("gaps_ms")))
        shown = [f"{_share(gaps, percent):,}" for percent in (50, 95, 100)] if gaps else ["", "", ""]
        figures = (f"{progress.number(name):,}" for name in ("acknowledged", "transactions"))
        rows.append((fault, f"{progress.done:,} of {goal:,}", *figures, *shown, _on_code(progress)))
    head = ("fault", "times", "records acknowledged", "transactions committed", "gap ms: p50", "p95", "most", "code")
    return _table(head, rows)


def _share(ordered: Sequence[int], percent: int) -> int:
    """Return the value that this share of the values does not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1]


def _fuzzing(record: Record) -> str:
    goals = fuzz_goals()
    reached = {name: record.of(fuzz_name(name)).done for name in goals}
    first = [name for name in goals if name in FIRST or name in ("Produce", "Fetch")]
    others = [name for name in goals if name not in first]
    complete = [name for name in others if reached[name] >= goals[name]]
    rows = [(name, f"{reached[name]:,}", f"{goals[name]:,}") for name in first]
    rows.append((f"each of {len(complete)} other targets", "500,000", "500,000"))
    rows += [(name, f"{reached[name]:,}", f"{goals[name]:,}") for name in others if name not in complete]
    rows.append(("all", f"{sum(reached.values()):,}", ""))
    return _table(("target", "inputs", "goal"), rows)


SECTIONS: dict[str, Callable[[Record], str]] = {
    "inputs read": _fuzzing,
    "seeds": _simulator,
    "known faults": _known_faults,
    "kills": _processes,
    "replicas": _replicas,
}

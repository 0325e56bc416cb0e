"""Output of a comparison with its targets: table and bars, JSON, or a page."""

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from headrace.cli.bench.options import circumstances, end_telling
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import EXIT_FAILED

if TYPE_CHECKING:
    from headrace.bench.figures import Measurement
    from tools.bench.performance_page import Section
    from tools.bench.targets import Verdict

_STYLES = {"reached": "green", "MISSED": "bold red", "not measured": "yellow"}


class Compared(Protocol):
    measurements: "list[Measurement]"
    failures: dict[str, str]


def show_comparison(
    comparison: Compared,
    judged: "list[Verdict]",
    section: "Section",
    *,
    folder: Path | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Show the comparison. Exits with 1 if a part has failed; a missed target is not a failure."""
    from tools.bench.performance_page import write_page

    end_telling()
    about = circumstances(folder)
    if page is not None:
        write_page(
            page,
            section,
            command=about["command"],
            day=datetime.date.today().isoformat(),
            machine=about["machine"],
            measurements=comparison.measurements,
            verdicts=judged,
            failures=comparison.failures,
        )
    if as_json:
        _print_json(comparison, judged, about)
    else:
        _print_table(comparison, judged)
    if comparison.failures:
        click.get_current_context().exit(EXIT_FAILED)


def _print_json(comparison: Compared, judged: "list[Verdict]", about: dict[str, object]) -> None:
    from headrace.bench.figures import as_json
    from tools.bench.performance_page import VERDICT_COLUMNS, verdict_row

    found = [as_json(one) for one in comparison.measurements]
    rows = [dict(zip(VERDICT_COLUMNS, verdict_row(verdict), strict=True)) for verdict in judged]
    print_json({**about, "measurements": found, "verdicts": rows, "failures": comparison.failures})


def _print_table(comparison: Compared, judged: "list[Verdict]") -> None:
    from headrace.bench.charts import bar_lines
    from tools.bench.performance_page import VERDICT_COLUMNS, verdict_row

    columns = VERDICT_COLUMNS
    print_table(columns, map(verdict_row, judged), right=columns[2:5], styles={"verdict": lambda word: _STYLES[word]})
    click.echo()
    for line in bar_lines(comparison.measurements):
        click.echo(line)
    for name, reason in comparison.failures.items():
        click.echo(f"{name} does not count: {reason}", err=True)

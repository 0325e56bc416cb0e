"""Output of commands: tables for people, JSON for programs, and progress bars.

rich is imported when the first table is printed: imports take most of the run time of a short command.
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import click

from headrace.model.ids import TopicPartition

PIPED_WIDTH = 10_000
"""Width of a table that goes to a file or a pipe, where no column is folded."""
COLUMN_GAP = 2
NARROW_GAP = 1
"""Gap between columns that fit a terminal only with the smaller gap, so that no heading is folded."""
FOLDED_WIDTH_MIN = 12
"""Width that a folded column of a table keeps at least."""


def print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Iterable[str] = (),
    styles: Mapping[str, Callable[[str], str]] | None = None,
    cut: Iterable[str] = (),
    empty: str = "nothing to show",
) -> None:
    """Print a table that fits the terminal; `right` names columns of numbers, `styles` colours cells by their text.

    Cells of the columns in `cut` are shortened where they do not fit; cells of other columns are folded.
    """
    from rich.table import Table

    shown = [[clean(str(cell)) for cell in row] for row in rows]
    if not shown:
        click.echo(empty)
        return
    numbers = set(right)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, COLUMN_GAP, 0, 0))
    console = _console()
    widths = [_width(column, cells) for column, *cells in zip(columns, *shown, strict=True)]
    for column in cut:
        place = columns.index(column)
        widths[place] = max(min(FOLDED_WIDTH_MIN, widths[place]), widths[place] - max(sum(widths) - console.width, 0))
        for row in shown:
            row[place] = _cut(row[place], widths[place] - COLUMN_GAP)
    whole = _whole_columns(widths, console.width)
    if sum(widths) > console.width >= sum(widths) - len(widths) * (COLUMN_GAP - NARROW_GAP):
        whole = set(range(len(widths)))
        table.padding = (0, NARROW_GAP, 0, 0)
    for number, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if column in numbers else "left"
        table.add_column(column.upper(), justify=justify, overflow="fold", no_wrap=number in whole)
    for row in shown:
        table.add_row(*(_styled(cell, (styles or {}).get(column)) for column, cell in zip(columns, row, strict=True)))
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        click.echo(line.rstrip())


def _width(column: str, cells: Iterable[str]) -> int:
    from rich.cells import cell_len

    return max(len(column), *map(cell_len, cells)) + COLUMN_GAP


def _cut(cell: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return cell if cell_len(cell) <= width else set_cell_size(cell, width - 1) + "…"


def _whole_columns(widths: Sequence[int], room: int) -> set[int]:
    """Return the columns that are never folded: the narrowest, while all others keep a readable width."""
    whole: set[int] = set()
    for column in sorted(range(len(widths)), key=widths.__getitem__):
        others = len(widths) - len(whole) - 1
        if widths[column] + others * FOLDED_WIDTH_MIN > room:
            break
        whole.add(column)
        room -= widths[column]
    return whole


def _styled(cell: str, style: Callable[[str], str] | None) -> Any:
    from rich.text import Text

    return Text(cell, style=style(cell) if style else "")


def _console() -> Any:
    from rich.console import Console

    # A new console per print: tests and pipes replace sys.stdout, and colours depend on the current one.
    is_terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, width=None if is_terminal else PIPED_WIDTH, highlight=False, soft_wrap=False)


def clean(text: str) -> str:
    """Escape control characters: names and values come from the network, and terminals execute escape codes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


@contextmanager
def connection_notices() -> Iterator[None]:
    """Print the client's messages about unreachable and reconnected brokers on stderr as they occur."""
    handler = _Notices()
    logger = logging.getLogger("headrace.client")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Notices(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"headrace: {clean(record.getMessage())}")


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """End quietly when the program that reads stdout ends first, as `head` does."""
    try:
        yield
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # the interpreter flushes stdout again when it exits
        os.close(nowhere)


_bars: list[Any] = []
"""The console of the current progress bar, if there is one."""


def say(text: str) -> None:
    """Print a line on stderr, above the progress bar if there is one."""
    if _bars:
        _bars[-1].print(text, markup=False, highlight=False, soft_wrap=True)
    else:
        click.echo(text, err=True)


@contextmanager
def progress(description: str, *, total: int | None = None, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a progress bar if stderr is a terminal; yield the function that advances it."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True) if in_bytes else MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(description, total=total)
        _bars.append(console)
        try:
            yield lambda count: bar.advance(task, count)
        finally:
            _bars.pop()


def partitions_text(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions by topic: `orders 0, 1, 2; payments 0`."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return "; ".join(f"{topic} {', '.join(map(str, numbers))}" for topic, numbers in by_topic.items())

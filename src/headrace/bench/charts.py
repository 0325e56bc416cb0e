"""Bars: one figure of several subjects, as lines of text for a terminal, and as a picture for a page."""

import os
import re
from collections.abc import Mapping, Sequence

from headrace.bench.figures import FIGURES, Measurement, figure_text

BAR_COLUMNS = 40
PICTURE_COLUMNS = 88
PRINCIPAL = (
    "cpu_us_per_request",
    "cpu_seconds_per_gigabyte",
    "p99_ratio",
    "p50_us",
    "requests_per_sync",
    "ready_seconds",
    "kilobytes_per_connection",
    "metadata_seconds",
    "embedded_ms",
    "seconds",
    "per_second",
    "rows_per_second",
    "batch_ms",
)
"""The figure a load is drawn by is the first of these that it has."""

_BLOCKS = " ▏▎▍▌▋▊▉█"
_WEB_FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""Rich's template loads a font from the network; a picture in a repository should not call anyone."""


def bar_lines(measurements: Sequence[Measurement]) -> list[str]:
    """Subjects beside each other under each load; where there is one subject only, loads under each figure."""
    by_load: dict[str, list[Measurement]] = {}
    for one in measurements:
        by_load.setdefault(one.load, []).append(one)
    lines: list[str] = []
    alone: dict[str, dict[str, float]] = {}
    for load, subjects in by_load.items():
        figure = next((name for name in PRINCIPAL if all(one.values(name) for one in subjects)), None)
        if figure is None:
            continue
        if len(subjects) > 1:
            values = {one.subject: one.median(figure) for one in subjects}
            lines += (f"{load}: {FIGURES[figure].label}", *_bars(values, figure))
        else:
            alone.setdefault(figure, {})[load] = subjects[0].median(figure)
    for figure, values in alone.items():
        lines += (FIGURES[figure].label, *_bars(values, figure))
    return lines


def _bars(values: Mapping[str, float], figure: str) -> list[str]:
    largest = max(values.values()) or 1.0
    width = max(map(len, values))
    return [
        f"  {name:{width}}  {bar(value / largest, BAR_COLUMNS)} {figure_text(figure, value)}"
        for name, value in values.items()
    ]


def bar(part: float, columns: int) -> str:
    """A bar of this part of the columns, to an eighth of one; never empty."""
    eighths = max(1, round(min(part, 1.0) * columns * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_BLOCKS[rest] if rest else "")


def picture(lines: Sequence[str], *, title: str) -> str:
    """The lines as an SVG."""
    from rich.console import Console
    from rich.text import Text

    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=PICTURE_COLUMNS, file=nowhere, force_terminal=True)
        for line in lines:
            console.print(Text(line, style=_style(line)), no_wrap=True, crop=True)
    return _WEB_FONT.sub("", console.export_svg(title=title, unique_id="headrace-bench"))


def _style(line: str) -> str:
    if not line.startswith(" "):
        return "bold"
    return "cyan" if line.startswith("  headrace") else "bright_black"

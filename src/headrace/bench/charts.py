"""Bar charts in text: one figure of several subjects."""

from collections.abc import Mapping, Sequence

from headrace.bench.figures import FIGURES, Measurement, figure_text

BAR_COLUMNS = 40
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
    "gap_p95_ms",
    "per_second",
    "rows_per_second",
    "batch_ms",
)
"""The chart of a load shows the first of these figures that the load has."""

_BLOCKS = " ▏▎▍▌▋▊▉█"


def bar_lines(measurements: Sequence[Measurement]) -> list[str]:
    """Return bars of all subjects for each load; loads with a single subject are grouped by figure."""
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
    """Return a bar of this part of the columns, with a resolution of an eighth; never empty."""
    eighths = max(1, round(min(part, 1.0) * columns * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_BLOCKS[rest] if rest else "")

"""`headrace top`: live rates of topics, lag of groups and load of a broker."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import COLUMN_GAP, clean, print_json
from headrace.cli.options import json_option
from headrace.client import Admin
from headrace.client.types import ConfigResource, ResourceType
from headrace.model.configs.listeners import parse_address
from headrace.operations.amounts import count_text, size_text
from headrace.operations.metrics_address import METRICS_CONFIG, metrics_address
from headrace.operations.top_samples import GroupRow, NodeRow, TopicRow, View, take_sample, view_of

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

INTERVAL_SECONDS = 2.0
INTERVAL_SECONDS_MIN = 0.1
PAGE_LINES = 8
"""Lines for the title, headings and gaps; the other lines of the screen show rows."""

PIPED_ROWS_MAX = 10_000
NAME_WIDTH_MIN = 10
TOPIC_COLUMNS = ("topic", "parts", "size", "records", "in/s", "out/s")
GROUP_COLUMNS = ("group", "state", "type", "members", "lag", "read/s")
SHED_FIRST = ("type", "parts", "members", "records", "size", "read/s", "state", "out/s")
"""Columns that are hidden on a narrow screen, in this order."""
LOOP_LAG_WARNING_MS = 100.0
ERRORS_SHOWN_MAX = 4
"""Errors shown in one line."""


@click.command("top")
@click.option("--interval", type=click.FloatRange(INTERVAL_SECONDS_MIN), default=INTERVAL_SECONDS, show_default=True)
@click.option("--once", is_flag=True, help="Take two samples, print the rates and exit.")
@click.option("--internal", is_flag=True, help="Also show internal topics.")
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help=f"Address of the metrics page. [default: from the broker's config {METRICS_CONFIG}]",
)
@connection_options
@json_option
def command(
    bootstrap: str,
    properties: Properties,
    metrics: str | None,
    interval: float,
    once: bool,
    internal: bool,
    as_json: bool,
) -> None:
    """Show live rates of topics, lag of groups and the load of a broker.

    Press Ctrl-C to exit. Rates are per second between two samples. The rate out of a topic is computed from the
    offsets that groups commit. The lines about the broker itself are read from its metrics page, which needs
    headrace.metrics.listen.
    """
    with Admin(bootstrap, **properties) as admin:
        page = parse_address(metrics) if metrics else _metrics_address(admin)
        before = take_sample(admin, page, with_internal=internal)
        with _Shown(bootstrap, as_json=as_json, live=not once) as show:
            while True:
                time.sleep(interval)
                now = take_sample(admin, page, with_internal=internal)
                show(view_of(before, now))
                before = now
                if once:
                    return


def _metrics_address(admin: Admin) -> tuple[str, int] | None:
    """Return the address of the metrics page of the first broker that has one."""
    cluster = admin.cluster()
    for broker in sorted(cluster.brokers):
        resource = ConfigResource(ResourceType.BROKER, str(broker.node_id))
        entries = admin.describe_configs([resource]).get(resource, ())
        listen = next((entry.value for entry in entries if entry.name == METRICS_CONFIG), None)
        if listen:
            return metrics_address(broker.host, listen)
    return None


class _Shown:
    """Context of the output: yields the function that shows a view, on a refreshed screen or line by line."""

    def __init__(self, bootstrap: str, *, as_json: bool, live: bool) -> None:
        self._bootstrap = bootstrap
        self._as_json = as_json
        self._screen: Any = None
        if live and not as_json and sys.stdout.isatty():
            from rich.console import Console
            from rich.live import Live

            self._screen = Live(console=Console(highlight=False), screen=True, auto_refresh=False)

    def __enter__(self) -> Callable[[View], None]:
        if self._screen is not None:
            self._screen.__enter__()
        return self._show

    def __exit__(self, *exception: Any) -> None:
        if self._screen is not None:
            self._screen.__exit__(*exception)

    def _show(self, view: View) -> None:
        if self._as_json:
            print_json(as_json_value(view))
        elif self._screen is not None:
            height, width = self._screen.console.height, self._screen.console.width
            self._screen.update(page(view, self._bootstrap, rows_max=height - PAGE_LINES, width=width), refresh=True)
        else:
            from rich.console import Console

            console = Console(highlight=False)
            console.print(page(view, self._bootstrap, rows_max=PIPED_ROWS_MAX, width=console.width))


def as_json_value(view: View) -> dict[str, object]:
    return {
        "brokers": view.brokers,
        "broker": None if view.node is None else _rounded(view.node),
        "topics": [_rounded(row) for row in view.topics],
        "groups": [_rounded(row) for row in view.groups],
    }


def _rounded(row: TopicRow | GroupRow | NodeRow) -> dict[str, object]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in row._asdict().items()}


def page(view: View, bootstrap: str, *, rows_max: int, width: int) -> "Group":
    from rich.console import Group
    from rich.text import Text

    topic_rows = max(min(len(view.topics), rows_max - min(len(view.groups), rows_max // 2)), 1)
    group_rows = max(rows_max - topic_rows, 1)
    head = f"headrace top  {bootstrap}  {time.strftime('%H:%M:%S')}  {count_text(view.brokers, 'broker')}"
    return Group(
        Text(head, style="bold", no_wrap=True, overflow="ellipsis"),
        Text(_node_line(view.node), style="dim" if view.node is None else "", no_wrap=True, overflow="ellipsis"),
        Text(_error_line(view.node), style=_error_style(view.node), no_wrap=True, overflow="ellipsis"),
        Text(_loop_line(view.node), style=_loop_style(view.node), no_wrap=True, overflow="ellipsis"),
        Text(),
        _table(TOPIC_COLUMNS, _topic_cells(view.topics[:topic_rows]), width),
        Text(),
        _table(GROUP_COLUMNS, _group_cells(view.groups[:group_rows]), width),
    )


def _node_line(node: NodeRow | None) -> str:
    if node is None:
        return f"no metrics: start the broker with --set {METRICS_CONFIG}=127.0.0.1:9644"
    return (
        f"in {_bytes(node.bytes_in_per_second)}/s  out {_bytes(node.bytes_out_per_second)}/s  "
        f"{_number(node.requests_per_second)} req/s  {_number(node.errors_per_second)} err/s  "
        f"{node.connections} conn"
    )


def _error_line(node: NodeRow | None) -> str:
    if node is None:
        return ""
    if not node.errors:
        return "no request failed"
    named = [f"{name} {_number(rate)}/s" for name, rate in node.errors.items()]
    more = len(named) - ERRORS_SHOWN_MAX
    return f"errors: {', '.join(named[:ERRORS_SHOWN_MAX])}" + (f" and {more} more" if more > 0 else "")


def _error_style(node: NodeRow | None) -> str:
    return "yellow" if node is not None and node.errors else "green"


def _loop_line(node: NodeRow | None) -> str:
    if node is None:
        return ""
    return f"turns of the loop: p99 {node.loop_p99_ms:.3g} ms, longest {node.loop_lag_ms:.1f} ms"


def _loop_style(node: NodeRow | None) -> str:
    return "red" if node is not None and node.loop_lag_ms >= LOOP_LAG_WARNING_MS else "green"


def _topic_cells(rows: Sequence[TopicRow]) -> list[tuple[str, ...]]:
    return [
        (
            row.topic,
            f"{row.partitions:,}",
            size_text(row.size_bytes),
            _number(row.records),
            _number(row.in_per_second),
            _number(row.out_per_second),
        )
        for row in rows
    ]


def _group_cells(rows: Sequence[GroupRow]) -> list[tuple[str, ...]]:
    return [
        (row.group, row.state, row.type, f"{row.members:,}", _number(row.lag), _number(row.read_per_second))
        for row in rows
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> "RenderableType":
    """Return a table with one line per row at any width: it shortens names, then hides the least important columns."""
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return Text(f"no {columns[0]}s", style="dim")
    places = shown_columns(columns, rows, width)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), width=width)
    for place in places:
        table.add_column(
            columns[place].upper(),
            justify="left" if place == 0 or columns[place] in ("state", "type") else "right",
            ratio=1 if place == 0 else None,
            min_width=NAME_WIDTH_MIN if place == 0 else None,
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in rows:
        behind = [columns[place] == "lag" and row[place] != "0" for place in places]
        cells = zip(places, behind, strict=True)
        table.add_row(*(Text(clean(row[place]), style="yellow" if is_behind else "") for place, is_behind in cells))
    return table


def shown_columns(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the indexes of the columns that fit beside a readable name."""
    widths = {
        place: max(len(columns[place]), *(len(clean(row[place])) for row in rows)) + COLUMN_GAP
        for place in range(1, len(columns))
    }
    for column in (*SHED_FIRST, ""):
        if NAME_WIDTH_MIN + COLUMN_GAP + sum(widths.values()) <= width:
            break
        widths = {place: needed for place, needed in widths.items() if columns[place] != column}
    return [0, *widths]


def _bytes(count: float) -> str:
    return size_text(int(count))


def _number(count: float) -> str:
    """Return a number in at most seven characters: 12,345 or 1.2M."""
    if count < 10 and count != int(count):
        return f"{count:.1f}"
    if count < 1_000_000:
        return f"{count:,.0f}"
    for unit in ("M", "G"):
        count /= 1_000_000 if unit == "M" else 1_000
        if count < 1_000:
            return f"{count:.1f}{unit}"
    return f"{count / 1_000:.1f}T"

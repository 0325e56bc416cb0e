"""Figures of a load: their names, units and number formats; the median and the range of several rounds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

Round = Mapping[str, float]
"""The figures of one round by name."""


class Figure(NamedTuple):
    label: str
    number_format: str

    def text(self, value: float) -> str:
        return self.number_format.format(value)


FIGURES: Mapping[str, Figure] = {
    "requests_per_second": Figure("requests/s", "{:,.0f}"),
    "cpu_us_per_request": Figure("CPU us/request", "{:,.1f}"),
    "transactions_per_second": Figure("transactions/s", "{:,.0f}"),
    "cpu_us_per_transaction": Figure("CPU us/transaction", "{:,.0f}"),
    "megabytes_per_second": Figure("MB/s", "{:,.0f}"),
    "cpu_seconds_per_gigabyte": Figure("CPU s/GB", "{:.3f}"),
    "p50_us": Figure("p50 us", "{:,.0f}"),
    "p99_us": Figure("p99 us", "{:,.0f}"),
    "client_cpu_us_per_request": Figure("client CPU us/request", "{:,.1f}"),
    "client_cpu_seconds_per_gigabyte": Figure("client CPU s/GB", "{:.3f}"),
    "retries_per_transaction": Figure("retries/transaction", "{:.2f}"),
    "requests_per_sync": Figure("requests per bare sync", "{:.1f}"),
    "stable_seconds": Figure("s to stable", "{:.3f}"),
    "cpu_ms": Figure("CPU ms", "{:.0f}"),
    "seconds": Figure("seconds", "{:.3f}"),
    "metadata_seconds": Figure("s to Metadata", "{:.3f}"),
    "ready_seconds": Figure("s to serve all", "{:.3f}"),
    "import_ms": Figure("import ms", "{:.0f}"),
    "embedded_ms": Figure("embedded ready ms", "{:.0f}"),
    "idle_megabytes": Figure("idle MB", "{:.1f}"),
    "grown_megabytes": Figure("grown by MB", "{:.1f}"),
    "kilobytes_per_connection": Figure("KB per connection", "{:.2f}"),
    "alone_p99_us": Figure("p99 us alone", "{:,.0f}"),
    "beside_p99_us": Figure("p99 us beside", "{:,.0f}"),
    "p99_ratio": Figure("p99 beside / alone", "{:.2f}"),
    "loop_p99_ms": Figure("p99 ms of a turn beside", "{:.2f}"),
    "cold_megabytes_per_second": Figure("cold MB/s", "{:,.0f}"),
    "tail_megabytes": Figure("unclean MB", "{:,.0f}"),
    "tail_batches": Figure("unclean batches", "{:,.0f}"),
    "allowed_seconds": Figure("allowed s", "{:.2f}"),
    "response_kilobytes": Figure("answer KB", "{:,.0f}"),
    "per_second": Figure("per second", "{:,.0f}"),
    "rows_per_second": Figure("rows/s", "{:,.0f}"),
    "cpu_us_per_row": Figure("CPU us/row", "{:.2f}"),
    "batch_ms": Figure("ms per micro-batch", "{:,.0f}"),
    "added_ms": Figure("ms more per micro-batch", "{:,.0f}"),
    "broker_megabytes": Figure("broker MB", "{:,.0f}"),
    "broker_growth": Figure("broker grows by", "{:.1%}"),
    "workers_megabytes": Figure("Python workers MB", "{:,.0f}"),
    "workers_growth": Figure("Python workers grow by", "{:.1%}"),
    "events_per_second": Figure("events/s", "{:,.0f}"),
    "warm_events_per_second": Figure("events/s after the first batch", "{:,.0f}"),
    "offered_per_second": Figure("events/s offered", "{:,.0f}"),
    "lag_p50_seconds": Figure("median lag s", "{:.1f}"),
    "wait_p50_seconds": Figure("median wait s", "{:.1f}"),
    "wait_max_seconds": Figure("longest wait s", "{:.1f}"),
    "wait_growth": Figure("wait of the last quarter / of the third", "{:.2f}"),
    "gap_ms": Figure("ms without an acknowledgement", "{:,.0f}"),
    "gap_p50_ms": Figure("p50 ms without an acknowledgement", "{:,.0f}"),
    "gap_p95_ms": Figure("p95 ms without an acknowledgement", "{:,.0f}"),
    "gap_max_ms": Figure("most ms without an acknowledgement", "{:,.0f}"),
    "failovers": Figure("changes of leaders", "{:,.0f}"),
    "cpu_us_per_event": Figure("CPU us/event", "{:.1f}"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Several rounds of a load on one subject."""

    load: str
    subject: str
    """The subject: headrace, kafka or the bare system calls."""

    client: str
    rounds: tuple[Round, ...]

    def values(self, figure: str) -> list[float]:
        return [found[figure] for found in self.rounds if figure in found]

    def median(self, figure: str) -> float:
        return median(self.values(figure))

    def spread(self, figure: str) -> float:
        return spread(self.values(figure))

    def figures(self) -> list[str]:
        """Return the names of the figures in the order of FIGURES."""
        present = {name for found in self.rounds for name in found}
        return [name for name in FIGURES if name in present]


def spread(values: Iterable[float]) -> float:
    """Return the range of the rounds, relative to their median."""
    found = list(values)
    middle = median(found)
    return (max(found) - min(found)) / middle if middle else 0.0


def as_json(measurement: Measurement) -> dict[str, object]:
    return {
        "load": measurement.load,
        "subject": measurement.subject,
        "client": measurement.client,
        "rounds": [dict(found) for found in measurement.rounds],
        "median": {name: measurement.median(name) for name in measurement.figures()},
        "spread": {name: measurement.spread(name) for name in measurement.figures()},
    }


def figure_text(name: str, value: float) -> str:
    return FIGURES[name].text(value)


def median_text(measurement: Measurement, figure: str) -> str:
    """Return the median and, for several rounds, half the range relative to it: `12.3 ±4%`."""
    text = figure_text(figure, measurement.median(figure))
    if len(measurement.values(figure)) < 2:
        return text
    return f"{text} ±{measurement.spread(figure) / 2:.0%}"

"""Reader of a broker's metrics page: the part of the Prometheus text format that the broker writes."""

import re
from http.client import HTTPConnection, HTTPException

from headrace.operations.errors import OperationError

PAGE_SECONDS_MAX = 10
PAGE_BYTES_MAX = 64 << 20

MetricsPage = dict[str, list[tuple[dict[str, str], float]]]
"""Labels and value of each sample, by metric name."""

Histogram = list[tuple[float, float]]
"""Upper bounds in ascending order, each with the cumulative count."""

LOOP_TURNS = "headrace_loop_turn_seconds"

_LINE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})? ([-+0-9.eE]+|[-+]?Inf|NaN)")
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')


class MetricsUnavailable(OperationError):
    """The metrics page of a broker cannot be read."""


def read_page(host: str, port: int) -> MetricsPage:
    connection = HTTPConnection(host, port, timeout=PAGE_SECONDS_MAX)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        content = response.read(PAGE_BYTES_MAX)
    except (OSError, HTTPException) as error:
        raise MetricsUnavailable(f"the metrics page at {host}:{port} cannot be read: {error}") from None
    finally:
        connection.close()
    if response.status != 200:
        raise MetricsUnavailable(
            f"the metrics page at {host}:{port} returns status {response.status}: is this a broker's metrics address?"
        )
    return parse_page(content.decode(errors="replace"))


def parse_page(text: str) -> MetricsPage:
    page: MetricsPage = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _LINE.fullmatch(line)
        if match is not None:
            name, labels, value = match.groups()
            page.setdefault(name, []).append((dict(_LABEL.findall(labels or "")), float(value)))
    return page


def total(page: MetricsPage, name: str) -> float:
    """Return the sum over all labels; 0 for an unknown name."""
    return sum(value for _, value in page.get(name, ()))


def totals_by(page: MetricsPage, name: str, label: str) -> dict[str, float]:
    """Return the sums over all other labels, such as the shard, by the value of one label."""
    sums: dict[str, float] = {}
    for labels, value in page.get(name, ()):
        sums[labels.get(label, "")] = sums.get(labels.get(label, ""), 0.0) + value
    return sums


def histogram(page: MetricsPage, name: str) -> Histogram:
    counts: dict[float, float] = {}
    for labels, value in page.get(f"{name}_bucket", ()):
        bound = float(labels.get("le", "inf"))
        counts[bound] = counts.get(bound, 0.0) + value
    return sorted(counts.items())


def difference(later: Histogram, earlier: Histogram) -> Histogram:
    counts = dict(earlier)
    return [(bound, count - counts.get(bound, 0.0)) for bound, count in later]


def percentile(counts: Histogram, part: float) -> float:
    """Return the upper bound of the bucket that holds the percentile."""
    if not counts or counts[-1][1] <= 0:
        return 0.0
    finite = [bound for bound, _ in counts if bound != float("inf")]
    wanted = counts[-1][1] * part
    reached = next(bound for bound, count in counts if count >= wanted)
    return reached if reached != float("inf") else max(finite, default=0.0)

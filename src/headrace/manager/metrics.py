"""Counters of one manager, and their page in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter, defaultdict

BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram of request times; one more bucket has no bound."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ManagerMetrics:
    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """By method, route and status."""
        self.records_produced = 0
        self.records_consumed = 0
        self.refused = 0
        self.in_progress = 0
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS_SECONDS) + 1))
        self._seconds: Counter[str] = Counter()

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        self._buckets[route][bisect_left(BUCKETS_SECONDS, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def page(self) -> str:
        lines = _heading("headrace_manager_requests_total", "counter", "HTTP requests by method, route and status.")
        for (method, route, status), count in sorted(self.requests.items()):
            lines.append(
                f'headrace_manager_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
            )
        lines += _heading("headrace_manager_request_seconds", "histogram", "Time of HTTP requests by route.")
        for route, buckets in sorted(self._buckets.items()):
            cumulative = 0
            for bound, count in zip((*map(str, BUCKETS_SECONDS), "+Inf"), buckets, strict=True):
                cumulative += count
                lines.append(f'headrace_manager_request_seconds_bucket{{route="{route}",le="{bound}"}} {cumulative}')
            lines.append(f'headrace_manager_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'headrace_manager_request_seconds_count{{route="{route}"}} {cumulative}')
        for name, kind, text, value in (
            ("requests_in_progress", "gauge", "HTTP requests and streams that are open.", self.in_progress),
            ("requests_refused_total", "counter", "Requests refused before they reached a route.", self.refused),
            ("records_produced_total", "counter", "Records that brokers have stored.", self.records_produced),
            ("records_consumed_total", "counter", "Records in responses.", self.records_consumed),
        ):
            lines += _heading(f"headrace_manager_{name}", kind, text)
            lines.append(f"headrace_manager_{name} {value}")
        return "\n".join((*lines, ""))


def _heading(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]

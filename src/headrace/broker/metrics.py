"""Metrics of one node, and their text for Prometheus.

The hot path only adds to plain integers: attributes, and tables by API key or error code. Names, labels and text are
made only while a scrape is served, a slice of lines at a time, because the number of lines grows with the number of
partitions. The text format is simple, so it is written here: a library would bring a lock per increment and a registry
of its own.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from headrace.model.errors import error_name

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LINES_PER_SLICE = 100
"""Lines of a scrape that are rendered per turn."""

PRODUCE_KEY = 0
OFFSET_COMMIT_KEY = 8
ERROR_CODES_MAX = 256
"""Error codes from -1 (the last element of the list) to one below this."""

LATENCY_BOUNDS_MS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 10_000.0)

Labels = tuple[tuple[str, str], ...]
NO_LABELS: Labels = ()


class Family(NamedTuple):
    """One metric with all its samples; `samples` may be a generator, so that it is rendered in slices."""

    name: str
    kind: str
    """counter or gauge"""
    help: str
    samples: Iterable[tuple[Labels, float]]


class Histogram:
    """Counts of values between fixed bounds, and their sum."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...] = LATENCY_BOUNDS_MS) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self._bounds, value)] += times
        self.sum += value * times

    def lines(self, name: str, labels: Labels, scale: float) -> Iterator[str]:
        """Yield the sample lines, with bounds and sum multiplied by `scale` (milliseconds to seconds)."""
        total = 0
        for bound, count in zip(self._bounds, self.counts, strict=False):
            total += count
            yield _line(f"{name}_bucket", (*labels, ("le", _number(bound * scale))), total)
        total += self.counts[-1]
        yield _line(f"{name}_bucket", (*labels, ("le", "+Inf")), total)
        yield _line(f"{name}_sum", labels, self.sum * scale)
        yield _line(f"{name}_count", labels, total)


class Metrics:
    """The counters of one node. Code that observes an event adds to the attribute of its name."""

    def __init__(self) -> None:
        self.requests: defaultdict[int, int] = defaultdict(int)
        """By API key, for the APIs that are served."""
        self.request_errors: defaultdict[int, int] = defaultdict(int)
        """Requests answered with an error at the top level or in any part."""
        self.latencies: defaultdict[int, Histogram] = defaultdict(Histogram)
        self.produce_errors = [0] * ERROR_CODES_MAX
        self.fetch_errors = [0] * ERROR_CODES_MAX
        self.records_appended = 0
        self.bytes_appended = 0
        self.records_replicated = 0
        self.bytes_replicated = 0
        self.bytes_fetched = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections_opened = 0
        self.connections_closed = 0
        self.connections_refused = 0
        self.connections_timed_out = 0
        self.accept_pauses = 0
        self.logins = 0
        self.logins_failed = 0
        self.sessions_expired = 0
        self.tls_handshakes = 0
        self.tls_handshakes_failed = 0
        self.protocol_errors = 0
        self.throttled_requests: defaultdict[str, int] = defaultdict(int)
        """Requests that exceeded a quota, by the key of the quota."""
        self.throttled_ms: defaultdict[str, float] = defaultdict(float)
        """Times for which their clients had to wait."""
        self.parked_requests = 0
        """Requests other than fetches that wait for an event now."""
        self.parked_fetches = 0
        """Fetches that wait for records now."""
        self.handler_failures = 0
        self._produced = 0
        self.commits_of_turn = 0
        """OffsetCommit requests answered in the turn in which they came."""
        self.turns = Histogram()
        self.turn_ms_max = 0.0
        """The longest turn since the last scrape, which is the longest delay of the loop."""

        self._peak_turn_ms = 0.0
        self.peak_append_ms = 0.0
        """The longest write of logs since the last heartbeat."""

    def take_peaks(self) -> tuple[float, float]:
        """Return the longest turn and the longest write since the last call."""
        peaks = (self._peak_turn_ms, self.peak_append_ms)
        self._peak_turn_ms = self.peak_append_ms = 0.0
        return peaks

    def loop_turn(self, elapsed_ms: float) -> None:
        """Note the duration of a turn.

        Produce requests are answered in the turn in which they come, so they took as long as it did; the waits of
        acks=all for a sync or for followers come on top and are counted as parked.
        """
        self.turns.observe(elapsed_ms)
        produced = self.requests[PRODUCE_KEY]
        if produced != self._produced:
            self.request_answered(PRODUCE_KEY, elapsed_ms, produced - self._produced)
            self._produced = produced
        if self.commits_of_turn:
            self.request_answered(OFFSET_COMMIT_KEY, elapsed_ms, self.commits_of_turn)
            self.commits_of_turn = 0
        if elapsed_ms > self.turn_ms_max:
            self.turn_ms_max = elapsed_ms
        if elapsed_ms > self._peak_turn_ms:
            self._peak_turn_ms = elapsed_ms

    def request_answered(self, api_key: int, elapsed_ms: float, times: int = 1) -> None:
        """Note the time of a request from its last byte received to the first byte of its response."""
        self.latencies[api_key].observe(elapsed_ms, times)

    def render(self, collectors: Iterable[Iterable[Family]] = ()) -> Iterator[bytes]:
        """Yield the text in slices of LINES_PER_SLICE lines; `collectors` give metrics kept elsewhere (log sizes)."""
        lines: list[str] = []
        for line in self._lines(collectors):
            lines.append(line)
            if len(lines) == LINES_PER_SLICE:
                yield "".join(lines).encode()
                lines.clear()
        if lines:
            yield "".join(lines).encode()

    def _lines(self, collectors: Iterable[Iterable[Family]]) -> Iterator[str]:
        for family in self._families():
            yield from _family_lines(family)
        yield from _heading("headrace_request_seconds", "histogram", "Time from request to response, by API.")
        for api_key, histogram in sorted(self.latencies.items()):
            yield from histogram.lines("headrace_request_seconds", (("api", _api_name(api_key)),), 0.001)
        yield from _heading("headrace_loop_turn_seconds", "histogram", "Time one turn of the loop took, waiting aside.")
        yield from self.turns.lines("headrace_loop_turn_seconds", NO_LABELS, 0.001)
        for collector in collectors:
            for family in collector:
                yield from _family_lines(family)

    def _families(self) -> Iterator[Family]:
        yield Family("headrace_requests_total", "counter", "Requests received, by API.", _by_api(self.requests))
        yield Family(
            "headrace_request_errors_total", "counter", "Requests answered with an error, by API.",
            _by_api(self.request_errors),
        )  # fmt: skip
        yield Family(
            "headrace_produce_errors_total", "counter", "Record sets refused, by error.", _by_error(self.produce_errors)
        )
        yield Family(
            "headrace_fetch_errors_total", "counter", "Partitions not read, by error.", _by_error(self.fetch_errors)
        )
        yield Family(
            "headrace_throttled_requests_total", "counter", "Requests that exceeded a quota, by quota.",
            _by_quota(self.throttled_requests, 1),
        )  # fmt: skip
        yield Family(
            "headrace_throttled_seconds_total", "counter", "Time that clients had to wait for a quota, by quota.",
            _by_quota(self.throttled_ms, 0.001),
        )  # fmt: skip
        longest, self.turn_ms_max = self.turn_ms_max, 0.0
        yield _gauge(
            "headrace_loop_lag_max_seconds", "The longest turn of the loop since the last scrape.", longest / 1e3
        )
        yield _gauge(
            "headrace_connections", "Open client connections.", self.connections_opened - self.connections_closed
        )
        yield _gauge(
            "headrace_requests_parked", "Requests other than fetches that wait for an event.", self.parked_requests
        )
        yield _gauge("headrace_fetches_parked", "Fetches that wait for records.", self.parked_fetches)
        for name, help_text, value in (
            ("handler_failures", "Requests that failed by a fault of the broker.", self.handler_failures),
            ("records_appended", "Records appended.", self.records_appended),
            ("bytes_appended", "Bytes of record batches appended.", self.bytes_appended),
            ("records_replicated", "Records copied from leaders.", self.records_replicated),
            ("bytes_replicated", "Bytes of record batches copied from leaders.", self.bytes_replicated),
            ("bytes_fetched", "Bytes of record batches handed to consumers.", self.bytes_fetched),
            ("bytes_in", "Bytes received from clients.", self.bytes_in),
            ("bytes_out", "Bytes sent to clients.", self.bytes_out),
            ("connections_opened", "Client connections accepted.", self.connections_opened),
            ("connections_closed", "Client connections closed.", self.connections_closed),
            ("connections_refused", "Client connections refused by a limit.", self.connections_refused),
            ("connections_timed_out", "Client connections closed as idle or slow.", self.connections_timed_out),
            ("accept_pauses", "Times a listener paused at its rate of new connections.", self.accept_pauses),
            ("logins", "Clients that have authenticated by SASL, at the first time or again.", self.logins),
            ("logins_failed", "Clients that SASL has refused.", self.logins_failed),
            (
                "sessions_expired",
                "Connections closed because their clients had not authenticated again in time.",
                self.sessions_expired,
            ),
            ("tls_handshakes", "TLS handshakes that have succeeded.", self.tls_handshakes),
            ("tls_handshakes_failed", "TLS handshakes that have failed.", self.tls_handshakes_failed),
            ("protocol_errors", "Connections closed for malformed input.", self.protocol_errors),
        ):
            yield Family(f"headrace_{name}_total", "counter", help_text, ((NO_LABELS, value),))


def _gauge(name: str, help_text: str, value: float) -> Family:
    return Family(name, "gauge", help_text, ((NO_LABELS, value),))


def _by_api(counts: Mapping[int, int]) -> Iterator[tuple[Labels, float]]:
    for api_key, count in sorted(counts.items()):
        if count:
            yield (("api", _api_name(api_key)),), count


def _by_error(counts: list[int]) -> Iterator[tuple[Labels, float]]:
    for index, count in enumerate(counts):
        if count:
            code = index if index < ERROR_CODES_MAX - 1 else -1
            yield (("error", error_name(code)),), count


def _by_quota(counts: Mapping[str, float], scale: float) -> Iterator[tuple[Labels, float]]:
    for key, count in sorted(counts.items()):
        yield (("quota", key),), count * scale


def _api_name(api_key: int) -> str:
    from headrace.wire.apis import ApiKey  # imported here because only scrapes need it

    try:
        return ApiKey(api_key).name.lower()
    except ValueError:
        return f"api_{api_key}"


def _heading(name: str, kind: str, help_text: str) -> Iterator[str]:
    yield f"# HELP {name} {_escaped(help_text)}\n"
    yield f"# TYPE {name} {kind}\n"


def _family_lines(family: Family) -> Iterator[str]:
    yield from _heading(family.name, family.kind, family.help)
    for labels, value in family.samples:
        yield _line(family.name, labels, value)


def _line(name: str, labels: Labels, value: float) -> str:
    if not labels:
        return f"{name} {_number(value)}\n"
    pairs = ",".join(f'{label}="{_escaped(text, quotes=True)}"' for label, text in labels)
    return f"{name}{{{pairs}}} {_number(value)}\n"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _escaped(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text

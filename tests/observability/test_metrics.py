"""The node's counters and their Prometheus text, read back by the official parser."""

from collections.abc import Iterable, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headrace.broker.metrics import LINES_PER_SLICE, Family, Histogram, Metrics
from headrace.model.errors import ErrorCode


def samples(metrics: Metrics, collectors: Iterable[Iterable[Family]] = ()) -> dict[tuple[str, ...], float]:
    text = b"".join(metrics.render(collectors)).decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_fresh_node_renders_zeros() -> None:
    found = samples(Metrics())
    assert found["headrace_bytes_in_total",] == 0
    assert found["headrace_connections",] == 0
    assert found["headrace_loop_turn_seconds_count",] == 0
    assert not any(name == "headrace_requests_total" for name, *_ in found)


def test_what_is_counted_is_rendered() -> None:
    metrics = Metrics()
    metrics.requests[0] += 3
    metrics.request_errors[3] += 1
    metrics.produce_errors[ErrorCode.CORRUPT_MESSAGE] += 2
    metrics.produce_errors[ErrorCode.UNKNOWN_SERVER_ERROR] += 5
    metrics.bytes_in += 10
    metrics.connections_opened += 4
    metrics.connections_closed += 1
    metrics.parked_requests += 6
    metrics.request_answered(1, 0.3)
    metrics.request_answered(1, 20_000)
    found = samples(metrics)
    assert found["headrace_requests_total", "produce"] == 3
    assert found["headrace_request_errors_total", "metadata"] == 1
    assert found["headrace_produce_errors_total", "CORRUPT_MESSAGE"] == 2
    assert found["headrace_produce_errors_total", "UNKNOWN_SERVER_ERROR"] == 5
    assert found["headrace_bytes_in_total",] == 10
    assert found["headrace_connections",] == 3
    assert found["headrace_requests_parked",] == 6
    assert found["headrace_request_seconds_count", "fetch"] == 2
    assert found["headrace_request_seconds_sum", "fetch"] == pytest.approx(20.0003)
    assert found["headrace_request_seconds_bucket", "fetch", "0.00025"] == 0
    assert found["headrace_request_seconds_bucket", "fetch", "0.0005"] == 1
    assert found["headrace_request_seconds_bucket", "fetch", "10"] == 1
    assert found["headrace_request_seconds_bucket", "fetch", "+Inf"] == 2


def test_an_unknown_api_key_is_counted_and_named_by_its_number() -> None:
    metrics = Metrics()
    metrics.request_answered(5000, 1)
    metrics.request_answered(5000, 1)
    assert samples(metrics)["headrace_request_seconds_count", "api_5000"] == 2


def test_the_longest_turn_is_reported_once() -> None:
    metrics = Metrics()
    for elapsed_ms in (1.0, 250.0, 2.0):
        metrics.loop_turn(elapsed_ms)
    assert samples(metrics)["headrace_loop_lag_max_seconds",] == 0.25
    found = samples(metrics)
    assert found["headrace_loop_lag_max_seconds",] == 0
    assert found["headrace_loop_turn_seconds_count",] == 3


def test_two_nodes_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.bytes_in += 1
    one.loop_turn(1)
    assert samples(other)["headrace_bytes_in_total",] == 0
    assert samples(other)["headrace_loop_turn_seconds_count",] == 0


def test_collectors_are_worked_off_in_slices() -> None:
    asked: list[int] = []

    def sizes() -> Iterator[tuple[tuple[tuple[str, str], ...], float]]:
        for partition in range(3 * LINES_PER_SLICE):
            asked.append(partition)
            yield (("topic", "orders"), ("partition", str(partition))), partition

    slices = Metrics().render([[Family("headrace_log_bytes", "gauge", "Log size.", sizes())]])
    found: list[bytes] = []
    for part in slices:
        found.append(part)
        assert len(asked) <= LINES_PER_SLICE * len(found)
    assert [part.count(b"\n") for part in found[:-1]] == [LINES_PER_SLICE] * (len(found) - 1)
    assert len(found) > 3
    last = 3 * LINES_PER_SLICE - 1
    assert b'headrace_log_bytes{topic="orders",partition="%d"} %d\n' % (last, last) in found[-1]


def test_labels_are_escaped() -> None:
    hostile = 'a"b\\c\nd'
    family = Family("headrace_x", "gauge", "Line\nbreak.", [((("name", hostile),), 1)])
    assert samples(Metrics(), [[family]])["headrace_x", hostile] == 1


def test_a_value_on_a_bound_belongs_to_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (1.0, 1.5, 2.0, 2.1):
        histogram.observe(value)
    assert histogram.counts == [1, 2, 1]

"""Metrics of clients: the meaning of each name in `metrics()`, and the metrics of several clients as Prometheus text.

    from headrace.client.metrics import prometheus_text

    text = prometheus_text(producer, consumer)

Nothing is collected or served in the background: the text is built from the counters at the time of the call.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, Protocol

from headrace.client.config import ClientConfig, ConsumerConfig
from headrace.model.ids import TopicPartition

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


class Metric(NamedTuple):
    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    """Unit in OpenTelemetry's notation."""
    help: str

    def prometheus_name(self) -> str:
        return f"headrace_{self.name.replace('.', '_')}{'_total' if self.kind == 'counter' else ''}"


METRICS: Mapping[str, Metric] = {
    "connection-count": Metric("client.connections", "gauge", "{connection}", "Open connections to brokers."),
    "connection-failure-total": Metric(
        "client.connection_failures", "counter", "{failure}", "Connections that could not be made or broke."
    ),
    "requests-in-flight": Metric("client.requests_in_flight", "gauge", "{request}", "Requests without a response yet."),
    "request-total": Metric("client.requests", "counter", "{request}", "Requests sent."),
    "incoming-byte-total": Metric("client.received_bytes", "counter", "By", "Bytes received from brokers."),
    "outgoing-byte-total": Metric("client.sent_bytes", "counter", "By", "Bytes sent to brokers."),
    "record-send-total": Metric("producer.records", "counter", "{record}", "Records delivered."),
    "record-error-total": Metric("producer.failed_records", "counter", "{record}", "Records given up."),
    "record-retry-total": Metric("producer.retried_batches", "counter", "{batch}", "Batches sent again."),
    "buffered-bytes": Metric("producer.buffered_bytes", "gauge", "By", "Bytes that wait to be delivered."),
    "batches-unsettled": Metric(
        "producer.unsettled_batches", "gauge", "{batch}", "Batches that are not delivered yet."
    ),
    "records-consumed-total": Metric("consumer.records", "counter", "{record}", "Records given to the application."),
    "bytes-consumed-total": Metric("consumer.fetched_bytes", "counter", "By", "Bytes of records fetched."),
    "fetch-total": Metric("consumer.fetches", "counter", "{request}", "Fetch requests answered or failed."),
    "assigned-partitions": Metric("consumer.assigned_partitions", "gauge", "{partition}", "Partitions being read."),
    "records-lag-max": Metric("consumer.lag_records_max", "gauge", "{record}", "The largest lag of a partition."),
}
LAG = Metric("consumer.lag_records", "gauge", "{record}", "Records behind the position, by partition.")

_LARGEST = frozenset({"records-lag-max"})
"""For clients with the same labels, the largest value is used; values of other metrics are added."""


class Metered(Protocol):
    """A Producer, Consumer or Admin of any front."""

    @property
    def config(self) -> ClientConfig: ...
    def metrics(self) -> dict[str, float]: ...


def prometheus_text(*clients: Metered) -> str:
    """Return the metrics of these clients, in the text format of Prometheus; may be called from any thread."""
    samples = totals(clients)
    lines: list[str] = []
    for key, metric in METRICS.items():
        lines += _family(metric, samples.get(key, {}))
    lines += _family(LAG, dict(lags(clients)))
    return "\n".join(lines) + "\n" if lines else ""


def totals(clients: Iterable[Metered]) -> dict[str, dict[Labels, float]]:
    """Sum values by names of `metrics()` and labels; clients with the same labels count together."""
    found: dict[str, dict[Labels, float]] = {}
    for client in clients:
        labels = labels_of(client)
        for key, value in client.metrics().items():
            series = found.setdefault(key, {})
            before = series.get(labels, 0)
            series[labels] = max(before, value) if key in _LARGEST else before + value
    return found


def lags(clients: Iterable[Metered]) -> Iterator[tuple[Labels, float]]:
    """Yield the lag of each partition being read, where it is known."""
    for client in clients:
        of_partitions: Mapping[TopicPartition, int | None] = client.lag() if hasattr(client, "lag") else {}
        for (topic, index), lag in of_partitions.items():
            if lag is not None:
                yield (*labels_of(client), ("topic", topic), ("partition", str(index))), lag


def labels_of(client: Metered) -> Labels:
    config = client.config
    labels = (("client", type(client).__name__.lower()), ("client_id", config.client_id))
    group_id = config.group_id if isinstance(config, ConsumerConfig) else None
    return labels if group_id is None else (*labels, ("group", group_id))


def _family(metric: Metric, series: Mapping[Labels, float]) -> list[str]:
    if not series:
        return []
    name = metric.prometheus_name()
    samples = [f"{name}{{{_written(labels)}}} {value:.17g}" for labels, value in series.items()]
    return [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}", *samples]


def _written(labels: Labels) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

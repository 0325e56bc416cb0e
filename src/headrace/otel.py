"""OpenTelemetry for Headrace's clients: spans, trace context in headers, and metrics. Needs the `otel` extra.

    from headrace import Consumer, Producer
    from headrace.otel import OpenTelemetry

    telemetry = OpenTelemetry()
    producer = Producer("127.0.0.1:9092", telemetry=telemetry)
    consumer = Consumer("orders", bootstrap_servers="127.0.0.1:9092", telemetry=telemetry)
    for record in consumer:
        with telemetry.processing(record):
            ...

Names are those of OpenTelemetry's semantic conventions for messaging and Kafka. Clients without `telemetry` do nothing
of this.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any
from weakref import WeakSet

from opentelemetry import context as contexts
from opentelemetry import metrics, propagate, trace
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider

from headrace import __version__
from headrace.client.errors import BrokerError, ClientError
from headrace.client.metrics import LAG, METRICS, Labels, Metered, lags, totals
from headrace.client.telemetry import Headers
from headrace.client.types import ConsumerRecord, RecordMetadata
from headrace.model.errors import error_name

LINKS_MAX = 128
"""Links of one receiving span; OpenTelemetry keeps no more by default."""

NANOSECONDS_PER_MS = 1_000_000


class OpenTelemetry:
    """Give it to clients as `telemetry`; one object serves any number of them."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
    ) -> None:
        """The program's global providers and propagator are used where none are given."""
        self._propagator = propagator or propagate.get_global_textmap()
        self._tracer = trace.get_tracer("headrace", __version__, tracer_provider)
        meter = metrics.get_meter("headrace", __version__, meter_provider)
        self._durations = meter.create_histogram(
            "messaging.client.operation.duration", "s", "Duration of send and poll operations."
        )
        self._process_durations = meter.create_histogram(
            "messaging.process.duration", "s", "Duration of processing a record."
        )
        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}", "Records sent.")
        self._consumed = meter.create_counter("messaging.client.consumed.messages", "{message}", "Records received.")
        self._lock = Lock()
        self._clients: WeakSet[Any] = WeakSet()
        self._closed: dict[str, dict[Labels, float]] = {}
        """The counters of closed clients, so that sums do not go back."""
        for key, metric in METRICS.items():
            make = meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
            make(f"headrace.{metric.name}", [self._observer(key)], metric.unit, metric.help)
        meter.create_observable_gauge(f"headrace.{LAG.name}", [self._observe_lags], LAG.unit, LAG.help)

    # Metrics of the clients

    def opened(self, client: Metered) -> None:
        with self._lock:
            self._clients.add(client)

    def closed(self, client: Metered) -> None:
        last = totals([client])
        with self._lock:
            if client not in self._clients:
                return
            self._clients.discard(client)
            for key, series in last.items():
                if METRICS[key].kind == "counter":
                    kept = self._closed.setdefault(key, {})
                    for labels, value in series.items():
                        kept[labels] = kept.get(labels, 0) + value

    def _open_clients(self) -> list[Metered]:
        with self._lock:
            return list(self._clients)

    def _observer(self, key: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            series = dict(self._closed.get(key, {}))
            for labels, value in totals(self._open_clients()).get(key, {}).items():
                series[labels] = series.get(labels, 0) + value
            return [Observation(value, dict(labels)) for labels, value in series.items()]

        return observe

    def _observe_lags(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(lag, dict(labels)) for labels, lag in lags(self._open_clients())]

    # Records that are sent

    def sending(
        self,
        client_id: str,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        headers: Headers,
    ) -> "SendingSpan":
        attributes = _attributes("send", "send", topic, client_id)
        span = self._tracer.start_span(
            f"send {topic}", kind=SpanKind.PRODUCER, attributes={**attributes, **_message(key, value, partition)}
        )
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, trace.set_span_in_context(span))
        given = {name for name, _ in headers}
        own = tuple((name, text.encode()) for name, text in carrier.items() if name not in given)
        return SendingSpan(self, span, attributes, (*headers, *own))

    def _was_sent(self, attributes: dict[str, str], began_ns: int) -> None:
        self._sent.add(1, attributes)
        self._durations.record((time.monotonic_ns() - began_ns) / 1e9, attributes)

    # Records that are received

    def received(
        self, client_id: str, group_id: str | None, records: Sequence[ConsumerRecord], duration_ms: float
    ) -> None:
        counts: dict[str, int] = {}
        for record in records:
            counts[record.topic] = counts.get(record.topic, 0) + 1
        topic = next(iter(counts)) if len(counts) == 1 else None
        group = {"messaging.consumer.group.name": group_id} if group_id is not None else {}
        end_ns = time.time_ns()
        span = self._tracer.start_span(
            f"poll {topic}" if topic is not None else "poll",
            kind=SpanKind.CLIENT,
            attributes={
                **_attributes("poll", "receive", topic, client_id),
                **group,
                "messaging.batch.message_count": len(records),
            },
            links=[link for record in records[:LINKS_MAX] for link in self._links(record)],
            start_time=end_ns - int(duration_ms * NANOSECONDS_PER_MS),
        )
        span.end(end_ns)
        self._durations.record(duration_ms / 1000, {**_attributes("poll", "receive", topic, client_id), **group})
        for name, count in counts.items():
            self._consumed.add(count, {**_attributes("poll", "receive", name, client_id), **group})

    @contextmanager
    def processing(self, record: ConsumerRecord, *, group_id: str | None = None) -> Iterator[Span]:
        """A span around the work on one record, linked to the span that sent it, and in its trace if none is active."""
        attributes = _attributes("process", "process", record.topic, None)
        if group_id is not None:
            attributes["messaging.consumer.group.name"] = group_id
        key = record.key if isinstance(record.key, bytes) else None
        details: dict[str, Any] = _message(key, record.value, record.partition)
        parent = None if _is_active(contexts.get_current()) else self._context(record)
        began_ns = time.monotonic_ns()
        with self._tracer.start_as_current_span(
            f"process {record.topic}",
            parent,
            kind=SpanKind.CONSUMER,
            attributes={**attributes, **details, "messaging.kafka.offset": record.offset},
            links=self._links(record),
        ) as span:
            try:
                yield span
            except BaseException as error:
                attributes["error.type"] = _error_type(error)
                span.set_attribute("error.type", attributes["error.type"])
                raise
            finally:
                self._process_durations.record((time.monotonic_ns() - began_ns) / 1e9, attributes)

    def _context(self, record: ConsumerRecord) -> contexts.Context:
        carrier = {name: value.decode(errors="replace") for name, value in record.headers if value is not None}
        return self._propagator.extract(carrier, contexts.Context())

    def _links(self, record: ConsumerRecord) -> list[Link]:
        if not record.headers:
            return []
        sent_in = trace.get_current_span(self._context(record)).get_span_context()
        return [Link(sent_in)] if sent_in.is_valid else []


class SendingSpan:
    """The span of one record, which ends when the record is delivered or given up."""

    __slots__ = ("_attributes", "_began_ns", "_span", "_telemetry", "headers")

    def __init__(self, telemetry: OpenTelemetry, span: Span, attributes: dict[str, str], headers: Headers) -> None:
        self.headers = headers
        self._telemetry = telemetry
        self._span = span
        self._attributes = attributes
        self._began_ns = time.monotonic_ns()

    def ended(self, outcome: RecordMetadata | ClientError) -> None:
        if isinstance(outcome, ClientError):
            self.failed(outcome)
            return
        self._span.set_attribute("messaging.destination.partition.id", str(outcome.partition))
        if outcome.offset >= 0:
            self._span.set_attribute("messaging.kafka.offset", outcome.offset)
        self._end()

    def failed(self, error: BaseException) -> None:
        self._attributes["error.type"] = _error_type(error)
        self._span.set_attribute("error.type", self._attributes["error.type"])
        self._span.set_status(Status(StatusCode.ERROR, str(error)))
        self._end()

    def _end(self) -> None:
        self._span.end()
        self._telemetry._was_sent(self._attributes, self._began_ns)


def _is_active(context: contexts.Context) -> bool:
    return trace.get_current_span(context).get_span_context().is_valid


def _attributes(name: str, kind: str, topic: str | None, client_id: str | None) -> dict[str, str]:
    attributes = {"messaging.system": "kafka", "messaging.operation.name": name, "messaging.operation.type": kind}
    if topic is not None:
        attributes["messaging.destination.name"] = topic
    if client_id is not None:
        attributes["messaging.client.id"] = client_id
    return attributes


def _message(key: bytes | None, value: object, partition: int | None) -> dict[str, Any]:
    """Return the attributes of one record; a key that is not text is left out."""
    found: dict[str, Any] = {}
    if partition is not None:
        found["messaging.destination.partition.id"] = str(partition)
    if key is not None:
        try:
            found["messaging.kafka.message.key"] = key.decode()
        except UnicodeDecodeError:
            pass
    if value is None:
        found["messaging.kafka.message.tombstone"] = True
    return found


def _error_type(error: BaseException) -> str:
    return error_name(error.code) if isinstance(error, BrokerError) else type(error).__name__

"""Spans, trace context and metrics with the OpenTelemetry SDK, and metrics as text that Prometheus' parser reads."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv._incubating.metrics import messaging_metrics
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client.parser import text_string_to_metric_families

from headrace.client import Admin, Consumer, Producer
from headrace.client.errors import BrokerError, InvalidArgument
from headrace.client.metrics import METRICS, prometheus_text
from headrace.otel import LINKS_MAX, OpenTelemetry
from headrace.testing import EmbeddedBroker

WAIT_MS = 60_000

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("front")]


class Observed(NamedTuple):
    telemetry: OpenTelemetry
    tracers: TracerProvider
    exported: InMemorySpanExporter
    reader: InMemoryMetricReader

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exported.get_finished_spans() if span.name == name]

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        found = [
            metric
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
        ]
        return [point for metric in found for point in metric.data.data_points]


@pytest.fixture
def observed() -> Iterator[Observed]:
    exported, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider([reader])
    tracers.add_span_processor(SimpleSpanProcessor(exported))
    yield Observed(OpenTelemetry(tracer_provider=tracers, meter_provider=meters), tracers, exported, reader)
    meters.shutdown()
    tracers.shutdown()


@pytest.fixture(scope="module")
def broker(any_broker: EmbeddedBroker) -> EmbeddedBroker:
    return any_broker


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    return broker.create_topic(broker.unused_topic_name("observed"), partitions=2)


def test_a_trace_from_the_sender_to_the_work_on_the_record(
    broker: EmbeddedBroker, topic: str, observed: Observed
) -> None:
    telemetry, servers = observed.telemetry, broker.bootstrap_servers
    with Producer(servers, client_id="shop", telemetry=telemetry) as producer:
        with observed.tracers.get_tracer("test").start_as_current_span("order") as order:
            producer.send(topic, b"v", key=b"k", partition=1, headers=[("own", b"1")]).result(timeout_ms=WAIT_MS)
    with Consumer(
        topic, bootstrap_servers=servers, group_id=f"g-{topic}", auto_offset_reset="earliest", telemetry=telemetry
    ) as consumer:
        (record,) = consumer.poll(timeout_ms=WAIT_MS)
        with telemetry.processing(record, group_id=f"g-{topic}"):
            pass
    (sent,) = observed.spans(f"send {topic}")
    assert (sent.kind, sent.status.status_code) == (SpanKind.PRODUCER, StatusCode.UNSET)
    assert sent.parent is not None
    assert sent.parent.span_id == order.get_span_context().span_id
    assert dict(sent.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": topic,
        "messaging.destination.partition.id": "1",
        "messaging.client.id": "shop",
        "messaging.kafka.message.key": "k",
        "messaging.kafka.offset": 0,
    }
    traceparent = f"00-{sent.context.trace_id:032x}-{sent.context.span_id:016x}-{int(sent.context.trace_flags):02x}"
    assert record.headers == (("own", b"1"), ("traceparent", traceparent.encode()))
    (received,) = observed.spans(f"poll {topic}")
    assert received.kind == SpanKind.CLIENT
    assert received.attributes is not None
    assert received.attributes["messaging.batch.message_count"] == 1
    assert received.attributes["messaging.consumer.group.name"] == f"g-{topic}"
    (worked,) = observed.spans(f"process {topic}")
    assert (worked.kind, worked.context.trace_id) == (SpanKind.CONSUMER, sent.context.trace_id)
    assert worked.parent is not None
    assert worked.parent.span_id == sent.context.span_id
    for span in (received, worked):
        assert [link.context.span_id for link in span.links] == [sent.context.span_id]
    known = {getattr(messaging_attributes, name) for name in dir(messaging_attributes) if name.isupper()}
    assert {name for span in (sent, received, worked) for name in span.attributes or {}} <= known


def test_work_within_another_span_is_its_child_and_linked_to_the_sender(
    broker: EmbeddedBroker, topic: str, observed: Observed
) -> None:
    telemetry, servers = observed.telemetry, broker.bootstrap_servers
    with Producer(servers, telemetry=telemetry) as producer:
        producer.send(topic, None, key=b"\xff").result(timeout_ms=WAIT_MS)
    with Consumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        record = next(consumer)
    with observed.tracers.get_tracer("test").start_as_current_span("batch") as batch:
        with pytest.raises(ZeroDivisionError), telemetry.processing(record):
            raise ZeroDivisionError
    (sent,), (worked,) = observed.spans(f"send {topic}"), observed.spans(f"process {topic}")
    assert worked.parent is not None
    assert worked.parent.span_id == batch.get_span_context().span_id
    assert [link.context.span_id for link in worked.links] == [sent.context.span_id]
    assert worked.status.status_code == StatusCode.ERROR
    assert worked.attributes is not None
    assert worked.attributes["error.type"] == "ZeroDivisionError"
    assert worked.attributes["messaging.kafka.message.tombstone"] is True
    assert "messaging.kafka.message.key" not in worked.attributes, "this key is not text"
    (duration,) = observed.points("messaging.process.duration")
    assert (duration.count, duration.attributes["error.type"]) == (1, "ZeroDivisionError")


def test_a_record_that_is_passed_on_keeps_the_context_that_it_came_with(
    broker: EmbeddedBroker, topic: str, observed: Observed
) -> None:
    first = ("traceparent", b"00-11111111111111111111111111111111-2222222222222222-01")
    with Producer(broker.bootstrap_servers, telemetry=observed.telemetry) as producer:
        producer.send(topic, b"v", headers=[first]).result(timeout_ms=WAIT_MS)
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        assert next(consumer).headers == (first,)


def test_records_that_are_refused(broker: EmbeddedBroker, observed: Observed) -> None:
    topic = broker.create_topic(broker.unused_topic_name("refusing"), configs={"max.message.bytes": "100"})
    with Producer(broker.bootstrap_servers, telemetry=observed.telemetry) as producer:
        with pytest.raises(BrokerError):
            producer.send(topic, bytes(500)).result(timeout_ms=WAIT_MS)
        with pytest.raises(InvalidArgument):
            producer.send(topic, b"v", partition=7)
    refused, unknown = observed.spans(f"send {topic}")
    assert {span.status.status_code for span in (refused, unknown)} == {StatusCode.ERROR}
    kinds = [(span.attributes or {})["error.type"] for span in (refused, unknown)]
    assert kinds == ["MESSAGE_TOO_LARGE", "InvalidArgument"]
    points = observed.points("messaging.client.sent.messages")
    assert sorted((point.attributes["error.type"], point.value) for point in points) == sorted(
        [("MESSAGE_TOO_LARGE", 1), ("InvalidArgument", 1)]
    )


def test_metrics_of_clients_also_after_their_end(broker: EmbeddedBroker, topic: str, observed: Observed) -> None:
    telemetry, servers = observed.telemetry, broker.bootstrap_servers
    count = LINKS_MAX + 10
    for _ in range(2):
        with Producer(servers, client_id="twins", telemetry=telemetry) as producer:
            for _ in range(count // 2):
                producer.send(topic, b"v", partition=0)
            producer.flush(timeout_ms=WAIT_MS)
    (sent,) = [each for each in observed.points("headrace.producer.records") if each.attributes["client_id"] == "twins"]
    assert (sent.value, sent.attributes["client"]) == (count, "producer")
    seen = 0
    with Consumer(
        topic, bootstrap_servers=servers, auto_offset_reset="earliest", max_poll_records=count, telemetry=telemetry
    ) as consumer:
        while seen < count:
            seen += len(consumer.poll(timeout_ms=WAIT_MS))
        lags = {
            point.attributes["partition"]: point.value for point in observed.points("headrace.consumer.lag_records")
        }
        assert lags["0"] == 0
    assert sum(point.value for point in observed.points("headrace.consumer.records")) == count
    assert sum(point.value for point in observed.points("messaging.client.consumed.messages")) == count
    assert sum(point.count for point in observed.points("messaging.client.operation.duration")) >= count + 1
    assert max(len(span.links) for span in observed.spans(f"poll {topic}")) <= LINKS_MAX
    names = {getattr(messaging_metrics, name) for name in dir(messaging_metrics) if name.startswith("MESSAGING")}
    assert {"messaging.client.sent.messages", "messaging.process.duration"} <= names


def test_metrics_as_text_for_prometheus(broker: EmbeddedBroker, topic: str) -> None:
    servers = broker.bootstrap_servers
    with Admin(servers) as admin, Producer(servers, client_id='a "quoted"\nname') as producer:
        admin.topics()
        for _ in range(3):
            producer.send(topic, b"v", partition=0)
        producer.flush(timeout_ms=WAIT_MS)
        options: dict[str, Any] = {"auto_offset_reset": "earliest", "group_id": f"g-{topic}"}
        with Consumer(topic, bootstrap_servers=servers, **options) as consumer:
            assert len(consumer.poll(timeout_ms=WAIT_MS)) == 3
            clients = [getattr(each, "_target", each) for each in (admin, producer, consumer)]
            text = prometheus_text(*clients)
            assert {name for each in clients for name in each.metrics()} == set(METRICS)
            assert prometheus_text(*clients, clients[1]).count("headrace_producer_records_total{") == 1
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert len(families) == len(METRICS) + 1
    (records,) = families["headrace_producer_records"].samples
    assert (records.value, records.labels["client_id"]) == (3.0, 'a "quoted"\nname')
    assert families["headrace_producer_records"].type == "counter"
    (consumed,) = families["headrace_consumer_records"].samples
    assert (consumed.value, consumed.labels) == (
        3.0,
        {"client": "consumer", "client_id": "headrace", "group": f"g-{topic}"},
    )
    lags = {sample.labels["partition"]: sample.value for sample in families["headrace_consumer_lag_records"].samples}
    assert lags["0"] == 0.0
    assert {sample.labels["client"] for sample in families["headrace_client_requests"].samples} == {
        "admin",
        "producer",
        "consumer",
    }
    assert prometheus_text() == ""


def test_metrics_are_read_by_another_thread_while_partitions_come_and_go(broker: EmbeddedBroker, topic: str) -> None:
    with Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        failures: list[BaseException] = []
        done = threading.Event()

        def scrape() -> None:
            try:
                while not done.is_set():
                    prometheus_text(getattr(consumer, "_target", consumer))
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=scrape)
        thread.start()
        for number in range(30):
            consumer.assign([(topic, number % 2)])
            consumer.poll(timeout_ms=1)
        done.set()
        thread.join()
    assert failures == []


def test_telemetry_is_off_unless_it_is_given(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, b"v").result(timeout_ms=WAIT_MS)
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        assert next(consumer).headers == ()
    with pytest.raises(InvalidArgument, match=r"telemetry such as headrace\.otel\.OpenTelemetry\(\) or None, not True"):
        Producer(broker.bootstrap_servers, telemetry=True)  # type: ignore[arg-type]
    program = "import sys, headrace; headrace.Producer; headrace.Consumer; print('opentelemetry' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "False\n"

"""The brokers for the tests: a new Headrace process that reports which requests it got, or Apache Kafka."""

import contextlib
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compat.kafka import apache_kafka
from compat.librdkafka.suite import WITHOUT_AUTO_CREATION
from headrace.testing import EmbeddedBroker

SCRAPE_S_MAX = 10.0
PARTITIONS = 4
"""Of topics made by being named; the tests count on it."""

AS_SHIPPED = {
    "group.initial.rebalance.delay.ms": "3000",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "50",
}
"""Settings that an embedded broker changes, restored to the defaults of a broker."""

REQUESTS = re.compile(r'^headrace_requests_total\{api="(?P<api>\w+)"\} (?P<count>\d+)', re.MULTILINE)
FAULTS = re.compile(r"^headrace_handler_failures_total (?P<count>\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The report of a broker on its own run, after a test."""

    apis: tuple[str, ...]
    """The APIs of which it got requests."""
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headrace:
    bootstrap_servers: str
    metrics_address: str

    def witness(self) -> Witness:
        try:
            with urllib.request.urlopen(f"http://{self.metrics_address}/metrics", timeout=SCRAPE_S_MAX) as answer:
                text = answer.read().decode()
        except (urllib.error.URLError, OSError) as gone:
            return Witness(apis=(), trouble=f"the broker's metrics cannot be read: {gone}")
        faults = sum(int(found["count"]) for found in FAULTS.finditer(text))
        apis = tuple(found["api"] for found in REQUESTS.finditer(text) if int(found["count"]))
        return Witness(apis=apis, trouble=f"{faults} requests failed inside the broker" if faults else "")


@contextlib.contextmanager
def headrace(scenario: str) -> Iterator[Headrace]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        metrics_address = f"127.0.0.1:{probe.getsockname()[1]}"
    config = {**AS_SHIPPED, **_settings(scenario), "headrace.metrics.listen": metrics_address}
    with EmbeddedBroker(process=True, config=config) as broker:
        yield Headrace(bootstrap_servers=broker.bootstrap_servers, metrics_address=metrics_address)


@contextlib.contextmanager
def kafka(scenario: str) -> Iterator[str]:
    """The address of one node of Apache Kafka; raises Missing without Maven."""
    with apache_kafka(settings=_settings(scenario)) as node:
        yield node.bootstrap_servers


def _settings(scenario: str) -> Mapping[str, str]:
    by_name = "false" if scenario == WITHOUT_AUTO_CREATION else "true"
    return {"num.partitions": str(PARTITIONS), "auto.create.topics.enable": by_name}

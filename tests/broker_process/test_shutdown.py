"""The end of a broker process: graceful at the first signal, at once at the second, and the folder it leaves."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from compat.adapters import connect
from compat.cases.case import assert_same, sample
from compat.client import Client
from headrace.client import Admin, NewTopic
from headrace.wire.apis import ApiKey
from headrace.wire.messages.fetch import FetchRequest, FetchRequestPartition, FetchRequestTopic
from tests.broker_process.broker_process import BrokerProcess
from tests.broker_process.raw_connection import RawConnection
from tests.broker_process.torn_tails import segments_written_last
from tests.reserved_ports import reserved_port

pytestmark = pytest.mark.process

CLEAN_MARKER = ".kafka_cleanshutdown"
FETCH_VERSION = 11
LONG_WAIT_MS = 600_000
"""Longer than a test waits for an answer, or for the end of a broker."""

LOOK_S = 0.02
PATIENT = {"headrace.shutdown.timeout.ms": str(LONG_WAIT_MS)}


def _create(broker: BrokerProcess, topic: str, **configs: str) -> str:
    with Admin(broker.bootstrap_servers) as admin:
        assert not admin.create_topics([NewTopic(topic, configs=configs)])[topic].error
    return topic


def _client(broker: BrokerProcess) -> Client:
    return connect("confluent-kafka", broker.bootstrap_servers)


def _fetch(topic: str, *, wait_ms: int, offset: int = 0) -> FetchRequest:
    partition = FetchRequestPartition(partition=0, fetch_offset=offset, partition_max_bytes=64 << 20)
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, topics=(FetchRequestTopic(topic=topic, partitions=(partition,)),)
    )


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_graceful_stop_leaves_the_marker_and_nothing_to_scan(tmp_path: Path, ending: signal.Signals) -> None:
    messages = sample(50, seed=1)
    with BrokerProcess(tmp_path) as broker:
        topic = _create(broker, "orders")
        client = _client(broker)
        client.send(topic, messages)
        client.close()
        broker.process.send_signal(ending)
        assert broker.wait() == 0
        assert (tmp_path / CLEAN_MARKER).exists()
        (segment,) = segments_written_last(tmp_path, topic)
        content = bytearray(segment.read_bytes())
        content[-1] ^= 0xFF  # a scan would cut this batch off
        segment.write_bytes(content)
        broker.start()
        client = _client(broker)
        assert client.bounds(topic) == (0, 50)
        client.close()
        assert not (tmp_path / CLEAN_MARKER).exists(), "a running broker is not cleanly shut down"


def test_data_and_topics_are_there_after_a_graceful_stop(tmp_path: Path) -> None:
    messages = sample(200, seed=2)
    with BrokerProcess(tmp_path) as broker:
        topic = _create(broker, "orders", **{"retention.ms": "3600000"})
        client = _client(broker)
        client.send(topic, messages[:100])
        topic_id = client.describe_topic(topic).topic_id
        client.close()
        broker.stop()
        broker.start()
        client = _client(broker)
        assert client.describe_topic(topic).topic_id == topic_id
        assert client.topic_configs(topic)["retention.ms"].value == "3600000"
        client.send(topic, messages[100:])
        assert_same(client.read(topic, 200), messages)
        client.close()


def test_a_graceful_stop_answers_parked_fetches(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, settings=PATIENT) as broker:
        topic = _create(broker, "quiet")
        with RawConnection(broker.bootstrap_servers) as waiting:
            waiting.send_request(ApiKey.FETCH, FETCH_VERSION, _fetch(topic, wait_ms=LONG_WAIT_MS))
            with RawConnection(broker.bootstrap_servers) as other:  # by its answer, the first request has been read
                other.call(ApiKey.FETCH, FETCH_VERSION, _fetch(topic, wait_ms=0))
            broker.terminate()
            answer = waiting.receive(ApiKey.FETCH, FETCH_VERSION)
            assert answer.responses[0].partitions[0].error_code == 0
            assert waiting.is_closed_by_broker()
        assert broker.wait() == 0


def _send_without_reading(connection: RawConnection, topic: str, requests: int) -> None:
    for _ in range(requests):
        connection.send_request(ApiKey.FETCH, FETCH_VERSION, _fetch(topic, wait_ms=0))


def _wait_until_stopping(broker: BrokerProcess) -> None:
    """Until it listens no more: a signal that came before it had taken the first would be one with it."""
    while True:
        try:
            RawConnection(broker.bootstrap_servers).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:  # it had not been accepted when the listener was closed
            continue
        time.sleep(LOOK_S)


def test_a_second_signal_ends_a_graceful_stop_at_once(tmp_path: Path) -> None:
    """The first waits for a client that does not take its answers."""
    with BrokerProcess(tmp_path, settings=PATIENT) as broker:
        topic = _create(broker, "large", **{"max.message.bytes": "8000000"})
        client = _client(broker)
        for _ in range(8):
            client.send(topic, [*sample(1, seed=3), *sample(1, seed=4, value_size=4_000_000)])
        client.close()
        with RawConnection(broker.bootstrap_servers) as deaf:
            _send_without_reading(deaf, topic, 4)
            with RawConnection(broker.bootstrap_servers) as other:
                other.call(ApiKey.FETCH, FETCH_VERSION, _fetch(topic, wait_ms=0, offset=16))
            broker.terminate()
            _wait_until_stopping(broker)
            with pytest.raises(subprocess.TimeoutExpired):
                broker.wait(1.0)
            broker.terminate()
            assert broker.wait() != 0
        assert not (tmp_path / CLEAN_MARKER).exists()
        broker.start()
        client = _client(broker)
        assert client.bounds(topic) == (0, 16)
        client.close()


def test_a_second_process_is_refused_the_same_folder(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as first:
        second = BrokerProcess(tmp_path)
        with pytest.raises(AssertionError) as refused:
            second.start()
        assert second.wait() == 1
        assert f"data folder {tmp_path} is in use by process {first.process.pid}" in str(refused.value)
        assert "--data-dir" in str(refused.value)
        second.forget()
        topic = _create(first, "orders")
        client = _client(first)
        client.send(topic, sample(5, seed=3))
        assert client.bounds(topic) == (0, 5)
        client.close()


def test_a_taken_port_is_reported(tmp_path: Path) -> None:
    port = reserved_port()
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with BrokerProcess(tmp_path / "first", settings=settings):
        second = BrokerProcess(tmp_path / "second", settings=settings)
        with pytest.raises(AssertionError) as refused:
            second.start()
        second.forget()
        assert f"127.0.0.1:{port}" in str(refused.value)
        assert "the port is in use" in str(refused.value)

"""Where a broker listens and what it tells clients: several listeners, advertised addresses, IPv6, metrics."""

import json
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from compat.adapters import connect
from compat.cases.case import assert_same, sample
from headrace.cli.main import cli
from headrace.model.addresses import is_loopback
from headrace.wire.apis import ApiKey
from headrace.wire.messages.metadata import MetadataRequest
from tests.broker_process.broker_process import BrokerProcess
from tests.broker_process.raw_connection import RawConnection
from tests.reserved_ports import reserved_port

pytestmark = pytest.mark.process

METADATA_VERSION = 9
NAMED = {"listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT"}


def _told(address: str) -> tuple[str, int]:
    """The address of the broker in the metadata that one of its listeners gives."""
    with RawConnection(address) as connection:
        (broker,) = connection.call(ApiKey.METADATA, METADATA_VERSION, MetadataRequest(topics=None)).brokers
    return broker.host, broker.port


def test_port_zero_is_announced_on_the_first_line(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        assert host == "127.0.0.1"
        assert int(port) > 0
        assert _told(broker.bootstrap_servers) == (host, int(port))


def test_each_listener_names_its_own_advertised_address(tmp_path: Path) -> None:
    settings = {
        **NAMED,
        "listeners": "INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
        "advertised.listeners": "INTERNAL://10.1.2.3:9092,EXTERNAL://broker.example:19092",
    }
    with BrokerProcess(tmp_path, settings=settings, listeners=2) as broker:
        internal, external = broker.addresses
        assert internal != external
        assert _told(internal) == ("10.1.2.3", 9092)
        assert _told(external) == ("broker.example", 19092)


def test_clients_of_two_listeners_share_their_data(tmp_path: Path) -> None:
    settings = {**NAMED, "listeners": "INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.1:0"}
    with BrokerProcess(tmp_path, settings=settings, listeners=2) as broker:
        inside, outside = (connect("confluent-kafka", address) for address in broker.addresses)
        inside.create_topic("shared")
        messages = sample(20, seed=5)
        inside.send("shared", messages)
        assert_same(outside.read("shared", 20), messages)
        assert inside.describe_cluster().brokers != outside.describe_cluster().brokers
        inside.close()
        outside.close()


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6 loopback: enable it to run this test")
@pytest.mark.parametrize("name", ["confluent-kafka", "kafka-python", "aiokafka"])
def test_ipv6(tmp_path: Path, name: str) -> None:
    with BrokerProcess(tmp_path, settings={"listeners": "PLAINTEXT://[::1]:0"}) as broker:
        assert broker.bootstrap_servers.startswith("[::1]:")
        assert _told(broker.bootstrap_servers)[0] == "::1"
        client = connect(name, broker.bootstrap_servers)
        client.create_topic("six")
        messages = sample(10, seed=6)
        client.send("six", messages)
        assert_same(client.read("six", 10), messages)
        client.close()


def test_metrics_are_scraped_while_clients_work(tmp_path: Path) -> None:
    port = reserved_port()
    with BrokerProcess(tmp_path, settings={"headrace.metrics.listen": f"127.0.0.1:{port}"}) as broker:
        client = connect("confluent-kafka", broker.bootstrap_servers)
        client.create_topic("measured")
        client.send("measured", sample(30, seed=7))
        client.read("measured", 30)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
            assert response.headers["Content-Type"].startswith("text/plain")
            page = response.read().decode()
        client.close()
    samples = dict(line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#"))
    assert samples['headrace_log_end_offset{topic="measured",partition="0"}'] == "30"
    requests = {name: float(value) for name, value in samples.items() if name.startswith("headrace_requests_total")}
    for api in ("produce", "fetch", "metadata", "create_topics"):
        assert any(f'"{api}"' in name and value > 0 for name, value in requests.items()), (api, sorted(requests))
    for family in ("bytes", "connections", "loop", "parked", "request_seconds", "error"):
        assert any(family in name for name in samples), family


def test_partitions_are_spread_over_log_directories(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    settings = {"log.dirs": ",".join(map(str, folders))}
    messages = sample(40, seed=8)
    with BrokerProcess(tmp_path, settings=settings) as broker:
        client = connect("kafka-python", broker.bootstrap_servers)
        client.create_topic("spread", partitions=4)
        for partition in range(4):
            part = messages[partition * 10 : partition * 10 + 10]
            client.send("spread", [replace(message, partition=partition) for message in part])
        client.close()
        broker.stop()
        held = [{path.name for path in folder.glob("spread-*")} for folder in folders]
        assert sorted(map(len, held)) == [2, 2]
        assert held[0] | held[1] == {f"spread-{partition}" for partition in range(4)}
        broker.start()
        client = connect("kafka-python", broker.bootstrap_servers)
        assert set(client.log_sizes("spread")) == {0, 1, 2, 3}
        for partition in range(4):
            part = messages[partition * 10 : partition * 10 + 10]
            assert_same(client.read("spread", 10, partition=partition), part)
        client.close()
        assert [{path.name for path in folder.glob("spread-*")} for folder in folders] == held


def _own_address() -> str | None:
    """An address of this machine that is not a loopback; None where there is none. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if is_loopback(address) else address


def _headrace(bootstrap: str, *arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments, env={"HEADRACE_BOOTSTRAP": bootstrap})
    return result.output + result.stderr


def test_a_listener_that_other_machines_reach_is_announced_and_protects_the_cluster(tmp_path: Path) -> None:
    outside = _own_address()
    if outside is None:
        pytest.skip("this machine has no address beside its loopback: connect it to a network to run this test")
    settings = {
        "listener.security.protocol.map": "LOCAL:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "listeners": f"LOCAL://127.0.0.1:0,PLAINTEXT://{outside}:0",
    }
    with BrokerProcess(tmp_path, settings=settings, listeners=2) as broker:
        local, reachable = broker.addresses
        (announced,) = [line for line in broker.complaints().splitlines() if "without authentication" in line]
        assert reachable in announced
        assert local not in announced
        change = ("configs", "alter", "--broker", "1", "--set", "max.connections=50")
        refused = _headrace(reachable, *change)
        assert "CLUSTER_AUTHORIZATION_FAILED" in refused
        assert f"no authorizer: this connection comes from {outside}" in refused
        assert "changed 1 config" in _headrace(local, *change)
        found = json.loads(_headrace(local, "doctor", "--json", "--data-dir", str(tmp_path)))
        (warned,) = [each for each in found if each["about"] == "listeners of broker 1"]
        assert warned["level"] == "warning"
        assert outside in warned["seen"]


def test_a_listener_on_the_loopback_is_not_announced(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        assert "without authentication" not in broker.complaints()

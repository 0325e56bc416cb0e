"""Configs of a node as a member of a cluster: roles, the cluster listener, peers and sessions."""

import pytest

from headrace.model.configs import BrokerConfig, ConfigError, Listener
from headrace.model.configs.sources import Setting, merged

CLUSTER = {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}


def cluster(**texts: str):
    return BrokerConfig.from_texts(CLUSTER | {name.replace("_", "."): text for name, text in texts.items()}).cluster


def test_a_node_without_a_cluster_listener_is_a_cluster_of_its_own() -> None:
    config = BrokerConfig.from_texts({}).cluster
    assert config.listener is None
    assert config.peers == ()
    assert config.is_broker
    assert config.is_controller


def test_the_cluster_listener_needs_no_protocol_map_and_serves_no_clients() -> None:
    config = BrokerConfig.from_texts(CLUSTER | {"advertised.listeners": "CONTROLLER://a.example:19093"})
    assert config.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert config.cluster.listener == Listener("CONTROLLER", "", 9093)
    assert config.cluster.advertised_listener == Listener("CONTROLLER", "a.example", 19093)


def test_peers_are_the_bootstrap_servers_without_this_node() -> None:
    servers = "localhost:9093,127.0.0.1:9093,[::1]:9093,a.example:19093,a.example:9094,b.example:9093,b.example:9093"
    config = BrokerConfig.from_texts(
        CLUSTER
        | {"advertised.listeners": "CONTROLLER://a.example:19093", "controller.quorum.bootstrap.servers": servers}
    )
    assert config.cluster.peers == (("a.example", 9094), ("b.example", 9093))


def test_a_loopback_port_of_another_node_is_a_peer_of_a_node_bound_elsewhere() -> None:
    config = BrokerConfig.from_texts(
        {
            "listeners": "PLAINTEXT://10.0.0.1:9092,CONTROLLER://10.0.0.1:9093",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093,10.0.0.1:9093",
        }
    )
    assert config.cluster.peers == (("127.0.0.1", 9093),)


def test_a_controller_has_no_listener_for_clients() -> None:
    config = BrokerConfig.from_texts({"process.roles": "controller", "listeners": "CONTROLLER://:9093"})
    assert config.listeners == ()
    assert not config.cluster.is_broker


def test_defaults_of_sessions_and_controllers() -> None:
    config = cluster()
    assert (config.session_timeout_ms, config.heartbeat_interval_ms) == (6_000, 1_000)
    assert config.controllers_target == 3
    assert config.host is None
    assert cluster(headrace_host="rack-7").host == "rack-7"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"process.roles": "controller"}, r'"process\.roles" is "controller", but this node has no listener'),
        ({"process.roles": "broker"}, "add one like CONTROLLER://127.0.0.1:9093 to listeners"),
        ({"controller.quorum.bootstrap.servers": "b:9093"}, "names b:9093, but this node has no listener for other"),
        (CLUSTER | {"process.roles": "controller"}, "process.roles=controller serves no clients: remove it"),
        ({"listeners": "CONTROLLER://:9093"}, "names no address for clients"),
        (
            {"listeners": "A://:1,B://:2,PLAINTEXT://:3", "controller.listener.names": "A,B"},
            "has A and B of controller.listener.names: a node has one listener for the cluster",
        ),
        (
            CLUSTER | {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL"},
            'listener "CONTROLLER" is for nodes and cannot use SSL',
        ),
        ({"broker.heartbeat.interval.ms": "4000"}, "must be at most half of broker.session.timeout.ms, which is 6000"),
    ],
)
def test_configs_that_cannot_work_together_are_refused(texts: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig.from_texts(texts)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("controller.quorum.bootstrap.servers", "b", "must end in :PORT"),
        ("controller.quorum.bootstrap.servers", ":9093", "must have the host and the port of a node"),
        ("controller.quorum.bootstrap.servers", "b:0", "must have the host and the port of a node"),
        ("controller.quorum.bootstrap.servers", ",".join(["b:1"] * 101), "has 101 addresses, at most 100"),
        ("headrace.controllers.target", "2", "must be one of 1, 3, 5"),
        ("broker.session.timeout.ms", "99", "from 100 to"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^--set: .*{message}"):
        merged([Setting(name, text, "--set")])

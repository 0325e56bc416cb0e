"""Configs of shards: own node ids, ports, folders and peers."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from headrace.model.configs.values import BrokerConfig
from headrace.shards.errors import ShardError
from headrace.shards.settings import ShardSettings, shard_settings


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., list[ShardSettings]]:
    def made(shards: int, **texts: str) -> list[ShardSettings]:
        named = {name.replace("_", "."): text for name, text in texts.items()}
        ports = count(50_001)
        config = BrokerConfig.from_texts({"log.dirs": str(tmp_path)} | named)
        return shard_settings(config, shards, lambda: next(ports))

    return made


Made = Callable[..., list[ShardSettings]]


def test_each_shard_has_its_own_id_port_and_folder(settings: Made, tmp_path: Path) -> None:
    first, second, third = settings(3, node_id="7")
    assert [each.node_id for each in (first, second, third)] == [7, 1007, 2007]
    assert first.texts["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:50001"
    assert third.texts["listeners"] == "PLAINTEXT://127.0.0.1:9094,CONTROLLER://127.0.0.1:50003"
    assert second.texts["log.dirs"] == f"{tmp_path}/shard-1"
    assert second.texts["node.id"] == "1007"


def test_only_shard_0_founds_the_cluster(settings: Made) -> None:
    first, second = settings(2)
    assert first.texts["controller.quorum.bootstrap.servers"] == ""
    assert second.texts["controller.quorum.bootstrap.servers"] == "127.0.0.1:50001"


def test_shard_0_founds_no_second_cluster_when_another_shard_has_one(settings: Made, tmp_path: Path) -> None:
    (tmp_path / "shard-1").mkdir()
    (tmp_path / "shard-1" / "meta.properties").write_text("node.id=1001")
    assert settings(2)[0].texts["controller.quorum.bootstrap.servers"] == "127.0.0.1:50002"


def test_shards_that_join_a_cluster_have_its_nodes_as_peers(settings: Made) -> None:
    first, second = settings(
        2,
        listeners="PLAINTEXT://:9092,CONTROLLER://:19092",
        controller_quorum_bootstrap_servers="10.0.0.1:19092",
    )
    assert first.texts["controller.quorum.bootstrap.servers"] == "10.0.0.1:19092"
    assert second.texts["controller.quorum.bootstrap.servers"] == "10.0.0.1:19092,127.0.0.1:19092"
    assert second.texts["listeners"] == "PLAINTEXT://:9093,CONTROLLER://:19093"


def test_advertised_ports_and_the_metrics_page_differ_per_shard(settings: Made) -> None:
    texts = {"advertised_listeners": "PLAINTEXT://a.example:29092", "headrace_metrics_listen": "127.0.0.1:9644"}
    first, second = settings(2, **texts)
    assert second.texts["advertised.listeners"] == "PLAINTEXT://a.example:29093"
    assert first.metrics_address != second.metrics_address
    assert "9644" not in first.texts["headrace.metrics.listen"]  # this address is the parent's


def test_port_0_is_a_free_port_of_each_shard(settings: Made) -> None:
    first, second = settings(2, listeners="PLAINTEXT://127.0.0.1:0")
    assert first.texts["listeners"] == "PLAINTEXT://127.0.0.1:50001,CONTROLLER://127.0.0.1:50002"
    assert second.texts["listeners"] == "PLAINTEXT://127.0.0.1:50003,CONTROLLER://127.0.0.1:50004"


def test_the_former_name_of_the_node_id_is_kept_equal(settings: Made) -> None:
    texts = settings(2, broker_id="3")[1].texts
    assert (texts["node.id"], texts["broker.id"]) == ("1003", "1003")
    BrokerConfig.from_texts(texts)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"node_id": "1000"}, "node.id is 1000, and with shards it must be below 1000"),
        ({"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}, "are too close for 4 shards"),
        ({"listeners": "PLAINTEXT://:65533"}, "leaves no room for the ports of 4 shards"),
    ],
)
def test_what_cannot_be_given_to_shards_is_refused(settings: Made, texts: dict[str, str], message: str) -> None:
    with pytest.raises(ShardError, match=message):
        settings(4, **texts)

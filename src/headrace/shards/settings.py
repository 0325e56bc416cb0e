"""Configs of each shard: those of the parent, with a node id, ports, folders and peers of its own."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from headrace.model.configs.listeners import PORT_MAX, Listener, address_text
from headrace.model.configs.values import BrokerConfig
from headrace.shards.errors import ShardError
from headrace.shards.layout import NODE_ID_STEP, is_formatted, shard_folder, shard_node_id

LOOPBACK = "127.0.0.1"
CLUSTER_LISTENER = "CONTROLLER"
METRICS_LISTEN = "headrace.metrics.listen"


class ShardSettings(NamedTuple):
    shard: int
    node_id: int
    home: str
    """Its first log directory, which holds its identity and the cluster key."""
    metrics_address: tuple[str, int] | None
    """Its own metrics page, which the parent reads."""
    texts: Mapping[str, str]
    """Configs that differ from the parent's."""


def shard_settings(config: BrokerConfig, count: int, free_port: Callable[[], int]) -> list[ShardSettings]:
    """Return the settings of `count` shards.

    A listener with a port has that port on shard 0 and the following ports on the others; a listener with port 0 has
    a free port on each. Without a cluster listener the shards get one on loopback.
    """
    _check_node_id(config.node_id)
    listeners = [*config.listeners, config.cluster.listener or Listener(CLUSTER_LISTENER, LOOPBACK, 0)]
    _check_ports(listeners, count)
    bound = [[_of_shard(listener, shard, free_port) for listener in listeners] for shard in range(count)]
    cluster_addresses = [_reachable(shard_listeners[-1]) for shard_listeners in bound]
    peers = [address_text(*peer) for peer in config.cluster.peers]
    settings = []
    for shard in range(count):
        folders = [shard_folder(folder, shard) for folder in config.log_dirs]
        metrics = None if config.metrics_address is None else (LOOPBACK, free_port())
        texts = {
            **_node_id_texts(config, shard),
            "log.dirs": ",".join(folders),
            "listeners": ",".join(map(str, bound[shard])),
            **_advertised_texts(config, shard),
            "controller.quorum.bootstrap.servers": ",".join(
                [*peers, *_fellow_shards(config, shard, cluster_addresses)]
            ),
        }
        if metrics is not None:
            texts[METRICS_LISTEN] = address_text(*metrics)
        settings.append(ShardSettings(shard, shard_node_id(config.node_id, shard), folders[0], metrics, texts))
    return settings


def _check_node_id(node_id: int) -> None:
    if node_id >= NODE_ID_STEP:
        raise ShardError(
            f"node.id is {node_id}, and with shards it must be below {NODE_ID_STEP}: shard 1 has the id "
            f"node.id + {NODE_ID_STEP}, shard 2 node.id + {2 * NODE_ID_STEP}, and so on"
        )


def _check_ports(listeners: Sequence[Listener], count: int) -> None:
    fixed = sorted((listener for listener in listeners if listener.port), key=lambda listener: listener.port)
    for listener in fixed:
        if listener.port + count - 1 > PORT_MAX:
            raise ShardError(f"{listener} leaves no room for the ports of {count} shards: choose a port below it")
    for lower, upper in pairwise(fixed):
        if upper.port - lower.port < count:
            raise ShardError(
                f"{lower} and {upper} are too close for {count} shards, which use {count} ports from each on: "
                f"leave at least {count} ports between them"
            )


def _of_shard(listener: Listener, shard: int, free_port: Callable[[], int]) -> Listener:
    return listener._replace(port=listener.port + shard if listener.port else free_port())


def _reachable(listener: Listener) -> str:
    """Return the address at which another shard of this machine reaches the listener."""
    return address_text(LOOPBACK if listener.any_host else listener.host, listener.port)


def _fellow_shards(config: BrokerConfig, shard: int, cluster_addresses: Sequence[str]) -> list[str]:
    """Return the other shards as peers; none for shard 0 while it is the only one that may found the cluster."""
    others = [number for number in range(len(cluster_addresses)) if number != shard]
    if shard == 0 and not any(is_formatted(shard_folder(config.log_dirs[0], other)) for other in others):
        return []
    return [cluster_addresses[other] for other in others]


def _node_id_texts(config: BrokerConfig, shard: int) -> dict[str, str]:
    node_id = str(shard_node_id(config.node_id, shard))
    former = {"broker.id": node_id} if "broker.id" in config.layers.static else {}
    return {"node.id": node_id, **former}


def _advertised_texts(config: BrokerConfig, shard: int) -> dict[str, str]:
    if "advertised.listeners" not in config.layers.static:
        return {}
    advertised = [*config.advertised_listeners]
    if config.cluster.advertised_listener is not None:
        advertised.append(config.cluster.advertised_listener)
    given = [listener for listener in advertised if not listener.any_host and listener.port]
    shifted = [listener._replace(port=listener.port + shard) for listener in given]
    return {"advertised.listeners": ",".join(map(str, shifted))}

"""Configs of a node as a member of a cluster: its roles, its cluster listener, its peers and its session."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.configs.definition import ConfigError
from headrace.model.configs.listeners import Listener, address_text, parse_address

BROKER, CONTROLLER = "broker", "controller"

CONTROLLERS_TARGETS = ("1", "3", "5")

BOOTSTRAP_SERVERS_MAX = 100

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Configs of the membership of this node."""

    roles: tuple[str, ...]
    listener: Listener | None
    """The listener for other nodes of the cluster; None for a standalone node."""
    advertised_listener: Listener | None
    """The address under which other nodes reach it; the host of an `any_host` listener is to be replaced by the
    machine's name."""
    peers: tuple[tuple[str, int], ...]
    """Host and port of the cluster listeners of other nodes: a node that has peers never founds a cluster."""
    session_timeout_ms: int
    heartbeat_interval_ms: int
    controllers_target: int
    host: str | None
    """The label of the failure domain; None for the machine's host name."""

    @property
    def is_broker(self) -> bool:
        return BROKER in self.roles

    @property
    def is_controller(self) -> bool:
        """Tell whether the node may become a voter of the metadata quorum."""
        return CONTROLLER in self.roles


def roles_error(text: str) -> str | None:
    roles = [item.strip() for item in text.split(",")]
    return "names a role twice" if len(set(roles)) < len(roles) else None


def voters_error(text: str) -> str | None:
    """Check the static voters of Kafka's older quorums, which Headrace does not have."""
    if "," not in text:
        return None
    return "must name one node: name the other nodes in controller.quorum.bootstrap.servers, they become voters there"


def controllers_target_error(text: str) -> str | None:
    return None if text in CONTROLLERS_TARGETS else f"must be one of {', '.join(CONTROLLERS_TARGETS)}"


def bootstrap_servers_error(text: str) -> str | None:
    servers = [item.strip() for item in text.split(",") if item.strip()]
    if len(servers) > BOOTSTRAP_SERVERS_MAX:
        return f"has {len(servers)} addresses, at most {BOOTSTRAP_SERVERS_MAX} are allowed"
    for server in servers:
        try:
            host, port = parse_address(server)
        except ValueError as wrong:
            return str(wrong)
        if not host or not port:
            return f'"{server}" must have the host and the port of a node, such as 10.0.0.2:9093'
    return None


def cluster_listener(listeners: Sequence[Listener], names: Sequence[str]) -> Listener | None:
    """Return the listener for other nodes: the only one that `controller.listener.names` lists."""
    found = [listener for listener in listeners if listener.name in names]
    if len(found) > 1:
        raise ConfigError(
            f'config "listeners" has {found[0].name} and {found[1].name} of controller.listener.names: '
            "a node has one listener for the cluster, remove the other"
        )
    return found[0] if found else None


def other_nodes(servers: Sequence[str], own: Sequence[Listener]) -> tuple[tuple[str, int], ...]:
    """Return the addresses of `servers` that are not this node's own."""
    addresses = dict.fromkeys(parse_address(server) for server in servers)
    return tuple(address for address in addresses if not any(_is_at(listener, address) for listener in own))


def _is_at(listener: Listener, address: tuple[str, int]) -> bool:
    host, port = address
    local = (listener.any_host or listener.host in _LOOPBACK) and host in _LOOPBACK
    return port == listener.port and (local or host == listener.host)


def check_cluster(cluster: ClusterConfig, *, names: Sequence[str]) -> None:
    """Raise ConfigError if these configs cannot work together."""
    wanted = names[0] if names else "CONTROLLER"
    if cluster.listener is None and (cluster.peers or not (cluster.is_broker and cluster.is_controller)):
        subject = (
            f'config "controller.quorum.bootstrap.servers" names {address_text(*cluster.peers[0])}'
            if cluster.peers
            else f'config "process.roles" is "{",".join(cluster.roles)}"'
        )
        raise ConfigError(
            f"{subject}, but this node has no listener for other nodes: "
            f"add one like {wanted}://127.0.0.1:9093 to listeners (or use --cluster-listen HOST:PORT)"
        )
    if 2 * cluster.heartbeat_interval_ms > cluster.session_timeout_ms:
        raise ConfigError(
            f'config "broker.heartbeat.interval.ms" is {cluster.heartbeat_interval_ms}: '
            f"must be at most half of broker.session.timeout.ms, which is {cluster.session_timeout_ms}"
        )

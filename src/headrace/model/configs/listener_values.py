"""The listeners of a node by its configs: those for clients, the one for other nodes, their protocols and addresses."""

from collections.abc import Mapping

from headrace.model.configs.cluster import ClusterConfig, check_cluster, cluster_listener, other_nodes
from headrace.model.configs.definition import ConfigError
from headrace.model.configs.listeners import Listener, parse_listeners, parse_protocol_map
from headrace.model.configs.tls import SecurityProtocol
from headrace.model.configs.typed_values import TypedValues


def _controller_names(values: TypedValues) -> tuple[str, ...]:
    return tuple(name.upper() for name in values.items("controller.listener.names"))


def cluster_config(values: TypedValues) -> ClusterConfig:
    """Return the checked configs of a node as a member of a cluster."""
    names = _controller_names(values)
    listener = cluster_listener(parse_listeners(values.items("listeners")), names)
    advertised = None if listener is None else advertised_listeners(values, (listener,))[0]
    own = () if listener is None or advertised is None else (listener, advertised)
    cluster = ClusterConfig(
        roles=values.items("process.roles"),
        listener=listener,
        advertised_listener=advertised,
        peers=other_nodes(values.items("controller.quorum.bootstrap.servers"), own),
        session_timeout_ms=values.whole("broker.session.timeout.ms"),
        heartbeat_interval_ms=values.whole("broker.heartbeat.interval.ms"),
        controllers_target=values.whole("headrace.controllers.target"),
        host=values.optional_text("headrace.host"),
    )
    check_cluster(cluster, names=names)
    return cluster


def client_listeners(values: TypedValues, cluster: ClusterConfig) -> tuple[Listener, ...]:
    """Return the listeners for clients, which a node without the role of a broker must not have."""
    listeners = parse_listeners(values.items("listeners"))
    clients = tuple(listener for listener in listeners if listener != cluster.listener)
    if cluster.is_broker and not clients:
        raise ConfigError('config "listeners" names no address for clients: add one like PLAINTEXT://127.0.0.1:9092')
    if clients and not cluster.is_broker:
        raise ConfigError(
            f'config "listeners" has {clients[0]}, but a node with process.roles=controller serves no clients: '
            "remove it, or add broker to process.roles"
        )
    return clients


def security_protocols(values: TypedValues) -> Mapping[str, SecurityProtocol]:
    """Return the security protocol of each listener."""
    known = parse_protocol_map(values.items("listener.security.protocol.map"))
    protocols: dict[str, SecurityProtocol] = {}
    for listener in parse_listeners(values.items("listeners")):
        between_nodes = listener.name in _controller_names(values)
        protocol = known.get(listener.name, SecurityProtocol.PLAINTEXT if between_nodes else None)
        if protocol is None:
            raise ConfigError(
                f'listener "{listener.name}" has no security protocol: '
                f'add "{listener.name}:PLAINTEXT" to listener.security.protocol.map'
            )
        if between_nodes and protocol != SecurityProtocol.PLAINTEXT:
            raise ConfigError(
                f'listener "{listener.name}" is for nodes and cannot use {protocol}: use PLAINTEXT, nodes prove to '
                "each other that they have the cluster key"
            )
        protocols[listener.name] = SecurityProtocol(protocol)
    return protocols


def advertised_listeners(values: TypedValues, listeners: tuple[Listener, ...]) -> tuple[Listener, ...]:
    """Return the advertised address of each of these listeners."""
    given = {listener.name: listener for listener in parse_listeners(values.items("advertised.listeners"))}
    known = {listener.name for listener in parse_listeners(values.items("listeners"))}
    unknown = sorted(given.keys() - known)
    if unknown:
        raise ConfigError(
            f'config "advertised.listeners" has "{unknown[0]}", which "listeners" does not: name the same listeners'
        )
    for advertised in given.values():
        if advertised.any_host:
            raise ConfigError(
                f'config "advertised.listeners" has {advertised}, which no client can connect to: '
                "give the host name or address that clients use"
            )
    return tuple(given.get(listener.name, listener) for listener in listeners)

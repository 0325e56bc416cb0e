"""Findings of `headrace doctor` about a running cluster: reachability, leaders, replicas and risky configs."""

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.broker.access import OPEN_LISTENER, OPEN_LISTENER_ADVICE, open_listeners
from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.client.types import (
    Broker,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    LogDirDescription,
    QuorumDescription,
    ResourceType,
    TopicDescription,
)
from headrace.model.configs.listeners import parse_listeners, parse_protocol_map
from headrace.model.configs.tls import ClientAuth, SecurityProtocol
from headrace.model.errors import ErrorCode, error_name
from headrace.model.ids import NO_NODE
from headrace.operations.amounts import count_text, size_text
from headrace.operations.cluster_health import quorum_reasons
from headrace.operations.findings import Finding, note, ok, problem, warning
from headrace.operations.health_checks import health_findings
from headrace.operations.machine_checks import DISK_FREE_BYTES_ADVISED
from headrace.operations.metrics_address import METRICS_CONFIG
from headrace.operations.topic_details import topic_configs

CONNECT_TIMEOUT_SECONDS = 3.0
NAMES_SHOWN_MAX = 5
NO_PROPERTIES: Mapping[str, Any] = {}
FREE_BYTES_MIN = "headrace.disk.free.min.bytes"


def check_broker(
    bootstrap: str,
    *,
    properties: Mapping[str, Any] = NO_PROPERTIES,
    expected: bool,
    timeout_ms: int,
    expected_folders: Sequence[Path] = (),
) -> Iterator[Finding]:
    """Check the cluster behind `bootstrap`.

    With `expected` the user named this address, so an unreachable broker is a problem rather than a note.
    `expected_folders` are the data folders that the user named as well, `properties` the settings of the client.
    """
    with Admin(config={**properties, "bootstrap_servers": bootstrap, "timeout_ms": timeout_ms}) as admin:
        try:
            cluster = admin.cluster()
        except ClientError as error:
            if expected:
                yield problem("broker", str(error), f"start it, or check the address {bootstrap}")
            else:
                yield note(
                    "broker", f"no broker answers at {bootstrap}", "start one with headrace broker, or use --bootstrap"
                )
            return
        seen = f"{count_text(len(cluster.brokers), 'broker')} at {bootstrap}, cluster {cluster.cluster_id}"
        yield ok("broker", seen)
        for broker in cluster.brokers:
            yield address_finding(broker, bootstrap)
        yield from _check_membership(admin)
        try:
            hosts = {broker.node_id: broker.host for broker in cluster.brokers}
            yield from _check_contents(admin, expected_folders, hosts)
        except ClientError as error:
            yield problem("broker", f"a request to the broker failed: {error}", "see its log")


def _check_membership(admin: Admin) -> Iterator[Finding]:
    try:
        registered = admin.cluster(include_fenced=True).brokers
    except ClientError as error:
        yield problem("broker", f"the registered brokers could not be described: {error}", "see its log")
        return
    yield from fenced_findings(registered)
    try:
        quorum = admin.quorum()
    except ClientError as error:
        advice = "start the voters: a majority of them must run; until then topics and configs cannot be changed"
        yield problem("controller", f"no controller answers: {error}", advice)
        return
    yield from quorum_findings(quorum)


def fenced_findings(registered: Sequence[Broker]) -> Iterator[Finding]:
    for broker in registered:
        if broker.is_fenced:
            advice = "start it, or see its log; headrace cluster unregister NODE removes one that is gone for good"
            yield problem(f"broker {broker.node_id}", "is fenced: the controller hears nothing from it", advice)


def quorum_findings(quorum: QuorumDescription) -> Iterator[Finding]:
    reasons = tuple(quorum_reasons(quorum))
    for reason in reasons:
        yield warning("controller", reason.text, reason.advice)
    if not reasons:
        yield ok("controller", f"node {quorum.leader} is active; {count_text(len(quorum.voters), 'voter')}")


def _check_contents(admin: Admin, expected_folders: Sequence[Path], hosts: Mapping[int, str]) -> Iterator[Finding]:
    topics = admin.topics()
    yield from partition_findings(topics)
    yield from config_findings(topics, topic_configs(admin, [topic.name for topic in topics]))
    folders = admin.log_dirs()
    yield from folder_findings([folder.path for folder in folders], expected_folders)
    configs = broker_configs(admin, {folder.node_id for folder in folders})
    for node_id, values in configs.items():
        yield from listener_findings(
            node_id,
            values.get("listeners", ""),
            protocols=values.get("listener.security.protocol.map", ""),
            client_auth=values.get("ssl.client.auth", ClientAuth.NONE),
        )
        yield from health_findings(node_id, hosts.get(node_id, ""), values.get(METRICS_CONFIG, ""))
    yield from log_dir_findings(
        folders, {node_id: int(values.get(FREE_BYTES_MIN, "0")) for node_id, values in configs.items()}
    )


def folder_findings(used: Sequence[str], expected: Sequence[Path]) -> Iterator[Finding]:
    """Report data folders that the user named and that this broker does not use."""
    known = {Path(path).resolve() for path in used}
    for folder in expected:
        if folder.resolve() not in known:
            seen = f"{folder} is not a log directory of this broker, which uses {_some(used)}"
            yield note("data folder", seen, "leave out --data-dir or --bootstrap to check only one of them")


def address_finding(broker: Broker, bootstrap: str) -> Finding:
    about = f"address of broker {broker.node_id}"
    address = f"{broker.host}:{broker.port}"
    try:
        socket.create_connection((broker.host, broker.port), CONNECT_TIMEOUT_SECONDS).close()
    except OSError as error:
        advice = f"clients of {bootstrap} are referred to {address}: set advertised.listeners to a reachable address"
        return problem(about, f"{address} is not reachable from here ({error})", advice)
    return ok(about, f"{address} is reachable from here")


def partition_findings(topics: Sequence[TopicDescription]) -> Iterator[Finding]:
    placed = [(topic.name, partition) for topic in topics for partition in topic.partitions]
    offline = [f"{name}-{partition.partition}" for name, partition in placed if partition.leader == NO_NODE]
    lagging = [
        f"{name}-{partition.partition}"
        for name, partition in placed
        if partition.leader != NO_NODE and len(partition.isr) < len(partition.replicas)
    ]
    if offline:
        seen = f"{count_text(len(offline), 'partition')} without a leader: {_some(offline)}"
        advice = "restore missing brokers and log directories; `headrace log verify` finds damaged files"
        yield problem("partitions", seen, advice)
    if lagging:
        seen = f"{count_text(len(lagging), 'partition')} with replicas out of sync: {_some(lagging)}"
        yield warning("partitions", seen, "check whether brokers are down, slow or disconnected")
    if not offline and not lagging:
        yield ok("partitions", f"{count_text(len(placed), 'partition')}, all with a leader and in sync")


def config_findings(
    topics: Sequence[TopicDescription], configs: Mapping[str, tuple[ConfigEntry, ...]]
) -> Iterator[Finding]:
    values = {name: {entry.name: entry for entry in entries} for name, entries in configs.items()}
    unclean = [name for name, own in values.items() if _value(own, "unclean.leader.election.enable") == "true"]
    if unclean:
        seen = f"unclean.leader.election.enable=true on {_some(unclean)}"
        yield warning("safety", seen, "acknowledged records can be lost: set it to false where they matter")
    starved = [
        topic.name
        for topic in topics
        if (wanted := _value(values.get(topic.name, {}), "min.insync.replicas")).isdecimal()
        and topic.partitions
        and int(wanted) > max(len(partition.replicas) for partition in topic.partitions)
    ]
    if starved:
        seen = f"min.insync.replicas is above the number of replicas on {_some(starved)}"
        yield problem("safety", seen, "acks=all is always refused there: lower it or add replicas")
    unlimited = [name for name, own in values.items() if _keeps_for_ever(own)]
    if unlimited:
        yield note("retention", f"retention is disabled for {_some(unlimited)}", "monitor the disk usage")


def _keeps_for_ever(own: Mapping[str, ConfigEntry]) -> bool:
    """Tell whether the topic itself turns off retention by both time and size."""
    chosen = any(name in own and own[name].source == ConfigSource.TOPIC for name in ("retention.ms", "retention.bytes"))
    return chosen and _value(own, "retention.ms") == "-1" and _value(own, "retention.bytes") == "-1"


def _value(own: Mapping[str, ConfigEntry], name: str) -> str:
    entry = own.get(name)
    return (entry.value or "") if entry is not None else ""


def broker_configs(admin: Admin, nodes: Iterable[int]) -> dict[int, dict[str, str]]:
    """Return the configs of each broker by name, without hidden configs and those that have no value."""
    resources = [ConfigResource(ResourceType.BROKER, str(node)) for node in nodes]
    return {
        int(resource.name): {entry.name: entry.value for entry in entries if entry.value is not None}
        for resource, entries in admin.describe_configs(resources).items()
    }


def listener_findings(
    node_id: int, listeners: str, *, protocols: str = "", client_auth: str = ClientAuth.NONE
) -> Iterator[Finding]:
    """Warn about each listener that other machines can reach and that lets in clients without a name."""
    try:
        configured = parse_listeners(_items(listeners))
        named = parse_protocol_map(_items(protocols))
        identity = ClientAuth(client_auth)
    except ValueError:
        return  # the notation of another implementation
    unknown = [
        listener
        for listener in configured
        if not SecurityProtocol(named.get(listener.name, SecurityProtocol.PLAINTEXT)).authenticates(identity)
    ]
    for found in open_listeners((listener.host or "0.0.0.0", listener.port) for listener in unknown):  # noqa: S104
        yield warning(f"listeners of broker {node_id}", f"{found} is {OPEN_LISTENER}", OPEN_LISTENER_ADVICE)


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def log_dir_findings(folders: Iterable[LogDirDescription], free_bytes_min: Mapping[int, int]) -> Iterator[Finding]:
    for folder in folders:
        about = f"log directory of broker {folder.node_id}"
        if folder.error != ErrorCode.NONE:
            seen = f"{Path(folder.path)} is offline ({error_name(folder.error)})"
            yield problem(about, seen, "check the broker's log and the disk, repair it and restart the broker")
        elif 0 <= folder.usable_bytes < free_bytes_min.get(folder.node_id, 0):
            minimum = size_text(free_bytes_min[folder.node_id])
            seen = f"{Path(folder.path)} is full: {size_text(folder.usable_bytes)} left, less than {minimum}"
            advice = "records are refused there (headrace.disk.free.min.bytes): delete records or topics, or free space"
            yield problem(about, seen, advice)
        elif 0 <= folder.usable_bytes < DISK_FREE_BYTES_ADVISED:
            seen = f"{size_text(folder.usable_bytes)} left at {Path(folder.path)}"
            yield warning(about, seen, "free some space, or shorten the retention of large topics")
        else:
            size = sum(replica.size_bytes for replica in folder.replicas)
            yield ok(about, f"{size_text(size)} in {count_text(len(folder.replicas), 'partition')} at {folder.path}")


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:NAMES_SHOWN_MAX])
    return shown if len(names) <= NAMES_SHOWN_MAX else f"{shown} and {len(names) - NAMES_SHOWN_MAX} more"

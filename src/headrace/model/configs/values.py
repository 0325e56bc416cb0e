"""Typed views of configs: one object for the broker, one for each topic."""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.model.configs.access import AccessConfig, access_config
from headrace.model.configs.audit import AuditConfig, audit_config
from headrace.model.configs.broker import BROKER_CONFIGS
from headrace.model.configs.broker_coordination import RACK_AWARE_SELECTOR
from headrace.model.configs.cluster import ClusterConfig
from headrace.model.configs.connections import ConnectionConfig, connection_config
from headrace.model.configs.definition import ConfigError, Scope
from headrace.model.configs.layers import NO_TEXTS, BrokerLayers, ConfigLayer, LayeredConfig, Synonym
from headrace.model.configs.listener_values import (
    advertised_listeners,
    client_listeners,
    cluster_config,
    security_protocols,
)
from headrace.model.configs.listeners import Listener, parse_address
from headrace.model.configs.sasl import SaslConfig, check_sasl, sasl_config
from headrace.model.configs.tls import SecurityProtocol, TlsConfig, check_tls, tls_config
from headrace.model.configs.topic import MINUTE_MS, TOPIC_CONFIGS
from headrace.model.configs.typed_values import TypedValues

__all__ = [
    "BrokerConfig",
    "CleanerConfig",
    "ConfigLayer",
    "GroupConfig",
    "LayeredConfig",
    "Synonym",
    "TopicConfig",
    "check_broker_change",
    "check_topic",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """Effective configs of a topic. Ages are in milliseconds; a retention of -1 means no limit."""

    cleanup_delete: bool
    cleanup_compact: bool
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_cleanable_dirty_ratio: float
    compact_request: str
    retention_ms: int
    retention_bytes: int
    file_delete_delay_ms: int
    segment_bytes: int
    segment_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    flush_messages: int
    flush_ms: int
    message_bytes_max: int
    compression_type: str
    validate_records: str | None
    """None for the level that is cheap in this installation."""
    log_append_time: bool
    timestamp_before_ms_max: int
    timestamp_after_ms_max: int
    min_insync_replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Configs of groups and of the offsets topic."""

    offsets_partitions: int
    offsets_replication_factor: int
    offsets_segment_bytes: int
    offset_retention_ms: int
    offset_check_interval_ms: int
    offset_metadata_bytes_max: int
    commit_timeout_ms: int
    session_timeout_ms_min: int
    session_timeout_ms_max: int
    initial_rebalance_delay_ms: int
    initial_rebalance_quiet_ms: int
    members_max: int
    groups_max: int
    consumer_session_timeout_ms: int
    consumer_heartbeat_interval_ms: int
    consumer_members_max: int
    consumer_assignors: tuple[str, ...]
    migration_policy: str
    protocols: tuple[str, ...]
    """The protocols that members may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Configs of transactions and of the transaction topic."""

    log_partitions: int
    log_replication_factor: int
    log_min_insync_replicas: int
    log_segment_bytes: int
    timeout_ms_max: int
    id_expiration_ms: int
    abort_interval_ms: int
    expiry_interval_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerConfig:
    """Configs of compaction on this broker."""

    enabled: bool
    jobs_max: int
    bytes_per_second: float
    key_map_bytes: int
    """Of all jobs together."""
    backoff_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Effective configs of a broker, with their layers."""

    layers: BrokerLayers
    node_id: int
    rack: str | None
    cluster: ClusterConfig
    listeners: tuple[Listener, ...]
    """The listeners for clients; none on a node that is only a controller."""
    advertised_listeners: tuple[Listener, ...]
    """One for each listener, by name; the host of an `any_host` listener is to be replaced by the machine's name."""
    security_protocols: Mapping[str, SecurityProtocol]
    """By the name of the listener."""
    tls: TlsConfig
    sasl: SaslConfig
    access: AccessConfig
    audit: AuditConfig
    secrets_strict: bool
    """True if the broker does not start when other users of the machine can read its secrets."""
    log_dirs: tuple[str, ...]
    num_partitions: int
    default_replication_factor: int
    sets_replication_factor: bool
    """False if default.replication.factor has its default, which does not go beyond the failure domains."""
    leader_balance_interval_ms: float | None
    """None if leadership is not moved back to preferred replicas."""
    auto_create_topics: bool
    delete_topics: bool
    frame_bytes_max: int
    connection_inflight_bytes_max: int
    total_inflight_bytes_max: int
    slow_client_timeout_ms: int
    connections_idle_ms_max: int
    connections: ConnectionConfig
    fetch_bytes_max: int
    quota_window_s: int
    mutation_window_s: int
    """The seconds for which a client may use its quota of changes of partitions at once."""
    fetch_sessions_max: int
    described_partitions_max: int
    retention_check_interval_ms: int
    recovery_checkpoint_interval_ms: int
    log_start_checkpoint_interval_ms: int
    high_watermark_checkpoint_interval_ms: int
    reads_nearest_replica: bool
    """True if consumers are sent to replicas in their racks."""
    replica_lag_ms_max: int
    replica_fetch_bytes_max: int
    """Of one partition in one response."""
    replica_response_bytes_max: int
    replica_fetch_wait_ms: int
    replica_timeout_ms: int
    producer_id_expiration_ms: int
    disk_free_bytes_min: int
    scan_held_bytes_max: int
    scrub_interval_ms: int
    scrub_bytes_per_second: int
    unclean_tail_bytes_max: int
    cleaner: CleanerConfig
    preallocate_bytes: int
    open_files_max: int
    topics_max: int
    partitions_max: int
    shutdown_timeout_ms: int
    groups: GroupConfig
    transactions: TransactionConfig
    metrics_address: tuple[str, int] | None
    log_format: str
    log_level: str

    @classmethod
    def from_texts(cls, texts: Mapping[str, str] = NO_TEXTS) -> "BrokerConfig":
        """Parse the merged texts of file, environment and command line; raise ConfigError for the first invalid one."""
        BROKER_CONFIGS.parse_all(texts)
        for name, text in texts.items():
            BROKER_CONFIGS.check_served(name, text)
        return _built(BrokerLayers(static=dict(texts)))

    def with_dynamic(self, *, cluster: Mapping[str, str], broker: Mapping[str, str]) -> "BrokerConfig":
        """Return the same broker with new dynamic configs: those of all brokers, and its own."""
        return _built(
            BrokerLayers(static=self.layers.static, dynamic_default=dict(cluster), dynamic_broker=dict(broker))
        )

    def describe(self) -> list[LayeredConfig]:
        """Return every broker config, for DescribeConfigs."""
        return self.layers.describe()

    def describe_topic(self, overrides: Mapping[str, str], *, replicas: int = 1) -> list[LayeredConfig]:
        """Return every config of a topic that sets `overrides`, for DescribeConfigs."""
        return self.layers.describe_topic(overrides, replicas=replicas)

    def topic_view(self, overrides: Mapping[str, str] = NO_TEXTS, *, replicas: int = 1) -> TopicConfig:
        """Return the effective configs of a topic that has `replicas` replicas and sets `overrides`."""
        values = TypedValues(
            {key.name: self.layers.topic_value(key, overrides, replicas=replicas) for key in TOPIC_CONFIGS}
        )
        policies = values.items("cleanup.policy")
        return TopicConfig(
            cleanup_delete="delete" in policies,
            cleanup_compact="compact" in policies,
            delete_retention_ms=values.whole("delete.retention.ms"),
            min_compaction_lag_ms=values.whole("min.compaction.lag.ms"),
            max_compaction_lag_ms=values.whole("max.compaction.lag.ms"),
            min_cleanable_dirty_ratio=values.number("min.cleanable.dirty.ratio"),
            compact_request=values.text("headrace.compact.request"),
            retention_ms=values.whole("retention.ms"),
            retention_bytes=values.whole("retention.bytes"),
            file_delete_delay_ms=values.whole("file.delete.delay.ms"),
            segment_bytes=values.whole("segment.bytes"),
            segment_ms=values.whole("segment.ms"),
            segment_index_bytes=values.whole("segment.index.bytes"),
            index_interval_bytes=values.whole("index.interval.bytes"),
            flush_messages=values.whole("flush.messages"),
            flush_ms=values.whole("flush.ms"),
            message_bytes_max=values.whole("max.message.bytes"),
            compression_type=values.text("compression.type"),
            validate_records=values.optional_text("headrace.validate.records"),
            log_append_time=values.text("message.timestamp.type") == "LogAppendTime",
            timestamp_before_ms_max=values.whole("message.timestamp.before.max.ms"),
            timestamp_after_ms_max=values.whole("message.timestamp.after.max.ms"),
            min_insync_replicas=values.whole("min.insync.replicas"),
        )


def check_topic(overrides: Mapping[str, str], *, topic: str) -> None:
    """Raise ConfigError if these configs are invalid for a topic, individually or together."""
    subject = f'topic "{topic}"'
    values = TOPIC_CONFIGS.parse_all(overrides, subject=subject)
    shortest, longest = values.get("min.compaction.lag.ms"), values.get("max.compaction.lag.ms")
    if isinstance(shortest, int) and isinstance(longest, int) and shortest > longest:
        raise ConfigError(
            f'config "min.compaction.lag.ms" for {subject} is {shortest}: '
            f"must not exceed max.compaction.lag.ms, which is {longest}"
        )


def check_broker_change(name: str, text: str | None, *, every_broker: bool) -> None:
    """Raise ConfigError if this value cannot be set on a running broker (None resets it to the file or default)."""
    key = BROKER_CONFIGS.lookup(name)
    if key.scope is Scope.READ_ONLY:
        raise ConfigError(f'config "{name}" cannot be changed while the broker runs: set it in the file and restart')
    if key.scope is Scope.PER_BROKER and every_broker:
        raise ConfigError(f'config "{name}" can be set only for one broker: name the broker')
    if text is not None:
        BROKER_CONFIGS.parse(name, text)
        BROKER_CONFIGS.check_served(name, text)


def _balance_interval_ms(values: TypedValues) -> float | None:
    interval_ms = 1_000 * values.whole("leader.imbalance.check.interval.seconds")
    return interval_ms if values.flag("auto.leader.rebalance.enable") else None


def _built(layers: BrokerLayers) -> BrokerConfig:
    values = TypedValues({key.name: layers.value(key.name) for key in BROKER_CONFIGS})
    cluster = cluster_config(values)
    listeners = client_listeners(values, cluster)
    protocols, tls = security_protocols(values), tls_config(values)
    sasl = sasl_config(values, layers.static)
    for listener in listeners:
        if protocols[listener.name].uses_tls:
            check_tls(tls, listener.name)
        if protocols[listener.name].uses_sasl:
            check_sasl(sasl, listener.name)
    queued_bytes = values.whole("queued.max.request.bytes")
    metrics = values.text("headrace.metrics.listen")
    return BrokerConfig(
        layers=layers,
        node_id=_node_id(layers),
        rack=values.optional_text("broker.rack"),
        cluster=cluster,
        listeners=listeners,
        advertised_listeners=advertised_listeners(values, listeners),
        security_protocols=protocols,
        tls=tls,
        sasl=sasl,
        access=access_config(values),
        audit=audit_config(values),
        secrets_strict=values.flag("headrace.secrets.strict"),
        log_dirs=values.items("log.dirs") or (values.text("log.dir"),),
        num_partitions=values.whole("num.partitions"),
        default_replication_factor=values.whole("default.replication.factor"),
        sets_replication_factor="default.replication.factor" in layers.static,
        leader_balance_interval_ms=_balance_interval_ms(values),
        auto_create_topics=values.flag("auto.create.topics.enable"),
        delete_topics=values.flag("delete.topic.enable"),
        frame_bytes_max=values.whole("socket.request.max.bytes"),
        connection_inflight_bytes_max=values.whole("headrace.connection.inflight.bytes.max"),
        total_inflight_bytes_max=queued_bytes
        if queued_bytes > 0
        else values.whole("headrace.total.inflight.bytes.max"),
        slow_client_timeout_ms=values.whole("headrace.slow.client.timeout.ms"),
        connections_idle_ms_max=values.whole("connections.max.idle.ms"),
        connections=connection_config(values, layers, (listener.name for listener in listeners)),
        fetch_bytes_max=values.whole("fetch.max.bytes"),
        quota_window_s=values.whole("quota.window.size.seconds"),
        mutation_window_s=values.whole("controller.quota.window.num")
        * values.whole("controller.quota.window.size.seconds"),
        fetch_sessions_max=values.whole("max.incremental.fetch.session.cache.slots"),
        described_partitions_max=values.whole("max.request.partition.size.limit"),
        retention_check_interval_ms=values.whole("log.retention.check.interval.ms"),
        recovery_checkpoint_interval_ms=values.whole("log.flush.offset.checkpoint.interval.ms"),
        log_start_checkpoint_interval_ms=values.whole("log.flush.start.offset.checkpoint.interval.ms"),
        high_watermark_checkpoint_interval_ms=values.whole("replica.high.watermark.checkpoint.interval.ms"),
        reads_nearest_replica=values.optional_text("replica.selector.class") == RACK_AWARE_SELECTOR,
        replica_lag_ms_max=values.whole("replica.lag.time.max.ms"),
        replica_fetch_bytes_max=values.whole("replica.fetch.max.bytes"),
        replica_response_bytes_max=values.whole("replica.fetch.response.max.bytes"),
        replica_fetch_wait_ms=values.whole("replica.fetch.wait.max.ms"),
        replica_timeout_ms=values.whole("replica.socket.timeout.ms"),
        producer_id_expiration_ms=values.whole("producer.id.expiration.ms"),
        disk_free_bytes_min=values.whole("headrace.disk.free.min.bytes"),
        scan_held_bytes_max=values.whole("headrace.scan.held.bytes.max"),
        scrub_interval_ms=values.whole("headrace.scrub.interval.ms"),
        scrub_bytes_per_second=values.whole("headrace.scrub.bytes.per.second"),
        unclean_tail_bytes_max=values.whole("headrace.unclean.tail.bytes.max"),
        cleaner=_cleaner(values),
        preallocate_bytes=values.whole("headrace.preallocate.bytes"),
        open_files_max=values.whole("headrace.open.files.max"),
        topics_max=values.whole("headrace.topics.max"),
        partitions_max=values.whole("headrace.partitions.max"),
        shutdown_timeout_ms=values.whole("headrace.shutdown.timeout.ms"),
        groups=_groups(values),
        transactions=_transactions(values),
        metrics_address=parse_address(metrics) if metrics else None,
        log_format=values.text("headrace.log.format"),
        log_level=values.text("headrace.log.level"),
    )


def _groups(values: TypedValues) -> GroupConfig:
    return GroupConfig(
        offsets_partitions=values.whole("offsets.topic.num.partitions"),
        offsets_replication_factor=values.whole("offsets.topic.replication.factor"),
        offsets_segment_bytes=values.whole("offsets.topic.segment.bytes"),
        offset_retention_ms=values.whole("offsets.retention.minutes") * MINUTE_MS,
        offset_check_interval_ms=values.whole("offsets.retention.check.interval.ms"),
        offset_metadata_bytes_max=values.whole("offset.metadata.max.bytes"),
        commit_timeout_ms=values.whole("offsets.commit.timeout.ms"),
        session_timeout_ms_min=values.whole("group.min.session.timeout.ms"),
        session_timeout_ms_max=values.whole("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=values.whole("group.initial.rebalance.delay.ms"),
        initial_rebalance_quiet_ms=values.whole("headrace.group.initial.rebalance.quiet.ms"),
        members_max=values.whole("group.max.size"),
        groups_max=values.whole("headrace.groups.max"),
        consumer_session_timeout_ms=values.whole("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms=values.whole("group.consumer.heartbeat.interval.ms"),
        consumer_members_max=values.whole("group.consumer.max.size"),
        consumer_assignors=values.items("group.consumer.assignors"),
        migration_policy=values.text("group.consumer.migration.policy"),
        protocols=values.items("group.coordinator.rebalance.protocols"),
    )


def _transactions(values: TypedValues) -> TransactionConfig:
    return TransactionConfig(
        log_partitions=values.whole("transaction.state.log.num.partitions"),
        log_replication_factor=values.whole("transaction.state.log.replication.factor"),
        log_min_insync_replicas=values.whole("transaction.state.log.min.isr"),
        log_segment_bytes=values.whole("transaction.state.log.segment.bytes"),
        timeout_ms_max=values.whole("transaction.max.timeout.ms"),
        id_expiration_ms=values.whole("transactional.id.expiration.ms"),
        abort_interval_ms=values.whole("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        expiry_interval_ms=values.whole("transaction.remove.expired.transaction.cleanup.interval.ms"),
    )


def _cleaner(values: TypedValues) -> CleanerConfig:
    share = values.number("log.cleaner.io.buffer.load.factor")
    return CleanerConfig(
        enabled=values.flag("log.cleaner.enable"),
        jobs_max=values.whole("log.cleaner.threads"),
        bytes_per_second=values.number("log.cleaner.io.max.bytes.per.second"),
        key_map_bytes=int(values.whole("log.cleaner.dedupe.buffer.size") * share),
        backoff_ms=values.whole("log.cleaner.backoff.ms"),
    )


def _node_id(layers: BrokerLayers) -> int:
    """Return node.id, or its former name broker.id; both may be set only to the same value."""
    node, broker = layers.value("node.id"), layers.value("broker.id")
    assert isinstance(node, int)
    if not isinstance(broker, int):
        return node
    if "node.id" in layers.static and node != broker:
        raise ConfigError(f'config "broker.id" is {broker} but "node.id" is {node}: give only node.id')
    return broker

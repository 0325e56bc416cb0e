"""Rows of the broker table for groups, transactions, replication and the controller."""
# ruff: noqa: E501  (one row is one line)

from headrace.model.configs.cluster import (
    bootstrap_servers_error,
    controllers_target_error,
    roles_error,
    voters_error,
)
from headrace.model.configs.definition import ConfigType, Scope, row
from headrace.model.configs.topic import DAY_MS, HOUR_MS, MINUTE_MS

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
SHORT, LIST = ConfigType.SHORT, ConfigType.LIST
CLUSTER = Scope.CLUSTER_WIDE


LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def replica_selector_error(text: str) -> str | None:
    selectors = (LEADER_SELECTOR, RACK_AWARE_SELECTOR)
    return None if text in selectors else f"must be one of {', '.join(selectors)}: other classes cannot be loaded"


def protocols_error(text: str) -> str | None:
    protocols = {item.strip() for item in text.split(",")}
    return None if "classic" in protocols else "must contain classic: the classic protocol cannot be disabled"


_OFFSETS = (
    row("offsets.topic.num.partitions", INT, 50, "The number of partitions of the offsets topic.", low=1),
    row("offsets.topic.replication.factor", SHORT, 3, "The replication factor of the offsets topic; at most the number of brokers.", low=1),
    row("offsets.topic.segment.bytes", INT, 100 << 20, "The segment size of the offsets topic.", low=1),
    row("offsets.topic.compression.codec", INT, 0, "The compression type of the offsets topic.", low=0, high=4, honoured=False),
    row("offsets.retention.minutes", INT, 10_080, "The retention of the offsets of an empty group.", low=1),
    row("offsets.retention.check.interval.ms", LONG, 10 * MINUTE_MS, "The interval of the check for expired offsets.", low=1),
    row("offsets.load.buffer.size", INT, 5 << 20, "The read size when the offsets topic is loaded.", low=1, honoured=False),
    row("offsets.commit.timeout.ms", INT, 5_000, "The timeout of an offset commit that waits for its replicas.", low=1),
    row("offset.metadata.max.bytes", INT, 4_096, "The maximum size of the metadata of a committed offset.", low=0),
)  # fmt: skip

_GROUPS = (
    row("group.min.session.timeout.ms", INT, 6_000, "The minimum session timeout of a member of a classic group.", low=1),
    row("group.max.session.timeout.ms", INT, 30 * MINUTE_MS, "The maximum session timeout of a member of a classic group.", low=1),
    row("group.initial.rebalance.delay.ms", INT, 3_000, "The maximum delay of the first rebalance of a new classic group; it waits only while members keep joining (headrace.group.initial.rebalance.quiet.ms).", low=0),
    row("group.max.size", INT, 2**31 - 1, "The maximum number of members of a classic group.", low=1),
    row("group.coordinator.threads", INT, 4, "The number of threads of the group coordinator.", low=1, honoured=False),
    row("group.coordinator.append.linger.ms", INT, -1, "The time in which the group coordinator collects records for one append; -1 adapts it to the load.", low=-1, honoured=False),
    row("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer", "streams"), "The group protocols that are served; without consumer, members of KIP-848 groups are refused. Streams groups are not supported, whether listed or not.", choices=("classic", "consumer", "streams"), validator=protocols_error),
    row("group.consumer.session.timeout.ms", INT, 45_000, "The session timeout of consumer groups.", low=1),
    row("group.consumer.min.session.timeout.ms", INT, 45_000, "The minimum session timeout of a consumer group.", low=1, honoured=False),
    row("group.consumer.max.session.timeout.ms", INT, MINUTE_MS, "The maximum session timeout of a consumer group.", low=1, honoured=False),
    row("group.consumer.heartbeat.interval.ms", INT, 5_000, "The heartbeat interval of consumer groups.", low=1),
    row("group.consumer.min.heartbeat.interval.ms", INT, 5_000, "The minimum heartbeat interval of a consumer group.", low=1, honoured=False),
    row("group.consumer.max.heartbeat.interval.ms", INT, 15_000, "The maximum heartbeat interval of a consumer group.", low=1, honoured=False),
    row("group.consumer.max.size", INT, 2**31 - 1, "The maximum number of members of a consumer group.", low=1),
    row("group.consumer.assignors", LIST, ("uniform", "range"), "The server-side assignors; the first one is the default.", choices=("uniform", "range")),
    row("group.consumer.migration.policy", STRING, "bidirectional", "Whether classic groups are converted to consumer groups and back.", choices=("disabled", "downgrade", "upgrade", "bidirectional")),
)  # fmt: skip

_GROUP_LIMITS = (
    row("headrace.group.initial.rebalance.quiet.ms", INT, 300, "The time without a new member after which a new classic group starts its first rebalance before group.initial.rebalance.delay.ms has passed; a value of at least that delay waits for all of it.", low=1),
    row("headrace.groups.max", INT, 100_000, "The maximum number of groups in a partition of the offsets topic.", low=1),
)  # fmt: skip

_TRANSACTIONS = (
    row("producer.id.expiration.ms", INT, DAY_MS, "The idle time after which the state of an idempotent producer is removed.", low=1, scope=CLUSTER),
    row("producer.id.expiration.check.interval.ms", INT, 10 * MINUTE_MS, "The interval of the check for idle producers.", low=1, honoured=False),
    row("transaction.max.timeout.ms", INT, 15 * MINUTE_MS, "The maximum transaction timeout of a producer.", low=1),
    row("transactional.id.expiration.ms", INT, 7 * DAY_MS, "The idle time after which a transactional id, or the last batch commit of a Spark sink, is removed.", low=1),
    row("transaction.state.log.num.partitions", INT, 50, "The number of partitions of the transaction topic.", low=1),
    row("transaction.state.log.replication.factor", SHORT, 3, "The replication factor of the transaction topic.", low=1),
    row("transaction.state.log.min.isr", INT, 2, "The min.insync.replicas of the transaction topic.", low=1),
    row("transaction.state.log.segment.bytes", INT, 100 << 20, "The segment size of the transaction topic.", low=1),
    row("transaction.state.log.load.buffer.size", INT, 5 << 20, "The read size when the transaction topic is loaded.", low=1, honoured=False),
    row("share.coordinator.state.topic.num.partitions", INT, 50, "The number of partitions of the share group state topic.", low=1, honoured=False),
    row("share.coordinator.state.topic.replication.factor", SHORT, 3, "The replication factor of the share group state topic.", low=1, honoured=False),
    row("share.coordinator.state.topic.min.isr", SHORT, 2, "The min.insync.replicas of the share group state topic.", low=1, honoured=False),
    row("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, "The interval at which expired transactions are aborted.", low=1),
    row("transaction.remove.expired.transaction.cleanup.interval.ms", INT, HOUR_MS, "The interval at which expired transactional ids are removed.", low=1),
    row("transaction.partition.verification.enable", BOOLEAN, True, "Whether a partition verifies that it was added to a transaction before it accepts its records.", scope=CLUSTER, honoured=False),
)  # fmt: skip

_REPLICATION = (
    row("default.replication.factor", INT, 3, "The replication factor of a new topic that asks for the default; unless it is set, at most the number of hosts with a broker.", low=1),
    row("min.insync.replicas", INT, 1, "The default of the topic config min.insync.replicas; unless it is set, 2 for topics with three replicas or more. Every node of a cluster needs the same value.", low=1, scope=CLUSTER),
    row("unclean.leader.election.enable", BOOLEAN, False, "The default of the topic config unclean.leader.election.enable.", scope=CLUSTER),
    row("auto.leader.rebalance.enable", BOOLEAN, True, "Whether leadership is moved back to preferred replicas automatically."),
    row("leader.imbalance.check.interval.seconds", LONG, 300, "The interval of the check for leader imbalance.", low=1),
    row("leader.imbalance.per.broker.percentage", INT, 10, "The leader imbalance that is tolerated per broker.", low=0, honoured=False),
    row("num.replica.fetchers", INT, 1, "The number of fetcher threads per source broker.", low=1, scope=CLUSTER, honoured=False),
    row("replica.lag.time.max.ms", LONG, 30_000, "The lag time after which a follower is removed from the in-sync replicas.", low=1),
    row("replica.fetch.max.bytes", INT, 1 << 20, "The maximum bytes per partition of a follower's fetch.", low=0),
    row("replica.fetch.response.max.bytes", INT, 10 << 20, "The maximum bytes of a follower's fetch response.", low=0),
    row("replica.fetch.min.bytes", INT, 1, "The minimum bytes of a follower's fetch response.", low=1, honoured=False),
    row("replica.fetch.wait.max.ms", INT, 500, "The maximum wait time of a follower's fetch at the leader.", low=1),
    row("replica.fetch.backoff.ms", INT, 1_000, "The backoff of a follower after a failed fetch.", low=0, honoured=False),
    row("replica.socket.timeout.ms", INT, 30_000, "The socket timeout of a follower's fetch.", low=1),
    row("replica.socket.receive.buffer.bytes", INT, 64 << 10, "The socket receive buffer of replication connections.", low=-1, honoured=False),
    row("replica.high.watermark.checkpoint.interval.ms", LONG, 5_000, "The interval at which high watermarks are written to disk.", low=1),
    row("replica.selector.class", ConfigType.CLASS, None, "The replica selector class, which chooses the replica that a consumer reads from: unset, the leader; org.apache.kafka.common.replica.RackAwareReplicaSelector, a replica in the consumer's rack (client.rack).", validator=replica_selector_error),
    row("inter.broker.listener.name", STRING, None, "The listener for connections from other brokers. They always use the listener of controller.listener.names.", honoured=False),
    row("security.inter.broker.protocol", STRING, "PLAINTEXT", "The security protocol between brokers.", choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), refusal="brokers identify each other by the key of the cluster, and connections between them are not encrypted"),
)  # fmt: skip

_CONTROLLER = (
    row("process.roles", LIST, ("broker", "controller"), "The roles of this node: a broker stores partitions and serves clients, a controller may become a voter of the metadata quorum.", choices=("broker", "controller"), validator=roles_error),
    row("controller.listener.names", LIST, ("CONTROLLER",), "The name of the listener for other nodes of the cluster, controllers and brokers. A node without such a listener is a cluster of its own."),
    row("controller.quorum.voters", LIST, (), "The voters of the metadata quorum, as id@host:port, in files for a single node. Other nodes become voters while the cluster runs.", validator=voters_error),
    row("controller.quorum.bootstrap.servers", LIST, (), "The host:port of cluster listeners of other nodes, through which this node joins the cluster. A node that has any never founds a cluster; its own address may be in the list.", validator=bootstrap_servers_error),
    row("controller.quorum.election.timeout.ms", INT, 1_000, "The time without a leader after which a voter starts an election.", low=1, honoured=False),
    row("controller.quorum.fetch.timeout.ms", INT, 2_000, "The time without a successful fetch from the leader after which a voter starts an election.", low=1, honoured=False),
    row("controller.quorum.request.timeout.ms", INT, 2_000, "The timeout of a quorum request.", low=1, honoured=False),
    row("broker.heartbeat.interval.ms", INT, 1_000, "The interval of the heartbeats from a broker to the controller; at most half of broker.session.timeout.ms.", low=1),
    row("broker.session.timeout.ms", INT, 6_000, "The time without a heartbeat after which the controller fences a broker.", low=100),
    row("headrace.controllers.target", INT, 3, "The number of voters that the metadata quorum grows to while enough controllers are there: 1, 3 or 5.", validator=controllers_target_error),
    row("headrace.controller.promotion", BOOLEAN, True, "Whether the active controller may make this node a voter by itself. RemoveRaftVoter sets it to false for the node, and AddRaftVoter removes that again; in a file it has no effect.", scope=Scope.PER_BROKER),
    row("headrace.host", STRING, None, "The failure domain of this node above its rack: brokers with the same value are expected to fail together, and replicas avoid sharing one. Defaults to the host name of the machine."),
    row("metadata.log.dir", STRING, None, "The directory of the metadata log; defaults to the first log directory.", honoured=False),
    row("metadata.log.segment.bytes", INT, 1 << 30, "The segment size of the metadata log.", low=12, honoured=False),
    row("metadata.log.max.record.bytes.between.snapshots", LONG, 20 << 20, "The size of new metadata records after which a snapshot is written.", low=1, honoured=False),
    row("metadata.log.max.snapshot.interval.ms", LONG, HOUR_MS, "The maximum time between metadata snapshots.", low=0, honoured=False),
    row("metadata.max.retention.ms", LONG, 7 * DAY_MS, "The retention time of metadata logs and snapshots.", low=0, honoured=False),
    row("metadata.max.retention.bytes", LONG, 100 << 20, "The maximum size of metadata logs and snapshots.", low=-1, honoured=False),
    row("metadata.max.idle.interval.ms", INT, 500, "The interval at which an idle quorum writes a no-op record.", low=0, honoured=False),
)  # fmt: skip

COORDINATION_ROWS = (*_OFFSETS, *_GROUPS, *_GROUP_LIMITS, *_TRANSACTIONS, *_REPLICATION, *_CONTROLLER)

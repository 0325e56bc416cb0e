"""The rows of the broker table that govern groups, transactions, replication and the controller."""
# ruff: noqa: E501  (one row is one line)

from headrace.model.configs.definition import ConfigType, Scope, row
from headrace.model.configs.topic import DAY_MS, HOUR_MS, MINUTE_MS

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
SHORT, LIST = ConfigType.SHORT, ConfigType.LIST
CLUSTER = Scope.CLUSTER_WIDE


def wrong_protocols(text: str) -> str | None:
    protocols = {item.strip() for item in text.split(",")}
    return None if "classic" in protocols else "must have classic: the classic protocol cannot be turned off"


def wrong_roles(text: str) -> str | None:
    roles = {item.strip() for item in text.split(",")}
    return "must be broker,controller: a node has both roles" if len(roles) < 2 else None


def wrong_quorum(text: str) -> str | None:
    return "must name one node: a node is a cluster of its own in this release" if "," in text else None


_OFFSETS = (
    row("offsets.topic.num.partitions", INT, 50, "How many partitions the topic of group offsets has.", low=1),
    row("offsets.topic.replication.factor", SHORT, 3, "How many replicas the topic of group offsets has; never more than there are brokers.", low=1),
    row("offsets.topic.segment.bytes", INT, 100 << 20, "The segment size of the topic of group offsets.", low=1),
    row("offsets.topic.compression.codec", INT, 0, "The compression of the topic of group offsets.", low=0, high=4, honoured=False),
    row("offsets.retention.minutes", INT, 10_080, "How long offsets of an empty group are kept.", low=1),
    row("offsets.retention.check.interval.ms", LONG, 10 * MINUTE_MS, "How often expired group offsets are looked for.", low=1),
    row("offsets.load.buffer.size", INT, 5 << 20, "The batch size when group offsets are loaded.", low=1, honoured=False),
    row("offsets.commit.timeout.ms", INT, 5_000, "How long an offset commit may wait for its replicas.", low=1),
    row("offset.metadata.max.bytes", INT, 4_096, "The largest note kept with a committed offset.", low=0),
)  # fmt: skip

_GROUPS = (
    row("group.min.session.timeout.ms", INT, 6_000, "The shortest session timeout a classic group member may ask for.", low=1),
    row("group.max.session.timeout.ms", INT, 30 * MINUTE_MS, "The longest session timeout a classic group member may ask for.", low=1),
    row("group.initial.rebalance.delay.ms", INT, 3_000, "How long a new classic group waits for more members at most before its first rebalance; it waits only while they keep coming (headrace.group.initial.rebalance.quiet.ms).", low=0),
    row("group.max.size", INT, 2**31 - 1, "The most members of a classic group.", low=1),
    row("group.coordinator.threads", INT, 4, "How many threads serve group coordinators.", low=1, honoured=False),
    row("group.coordinator.append.linger.ms", INT, -1, "How long the group coordinator gathers records into one append; -1: by its load.", low=-1, honoured=False),
    row("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer", "streams"), "Which group protocols are served; without consumer, members of KIP-848 groups are refused. Streams groups are not served yet, listed or not.", choices=("classic", "consumer", "streams"), validator=wrong_protocols),
    row("group.consumer.session.timeout.ms", INT, 45_000, "The session timeout of consumer groups.", low=1),
    row("group.consumer.min.session.timeout.ms", INT, 45_000, "The shortest session timeout of a consumer group.", low=1, honoured=False),
    row("group.consumer.max.session.timeout.ms", INT, MINUTE_MS, "The longest session timeout of a consumer group.", low=1, honoured=False),
    row("group.consumer.heartbeat.interval.ms", INT, 5_000, "How often members of a consumer group send a heartbeat.", low=1),
    row("group.consumer.min.heartbeat.interval.ms", INT, 5_000, "The shortest heartbeat interval of a consumer group.", low=1, honoured=False),
    row("group.consumer.max.heartbeat.interval.ms", INT, 15_000, "The longest heartbeat interval of a consumer group.", low=1, honoured=False),
    row("group.consumer.max.size", INT, 2**31 - 1, "The most members of a consumer group.", low=1),
    row("group.consumer.assignors", LIST, ("uniform", "range"), "The server-side assignors, the default first.", choices=("uniform", "range")),
    row("group.consumer.migration.policy", STRING, "bidirectional", "Whether classic groups turn into consumer groups and back.", choices=("disabled", "downgrade", "upgrade", "bidirectional")),
)  # fmt: skip

_GROUP_LIMITS = (
    row("headrace.group.initial.rebalance.quiet.ms", INT, 300, "How long no member must have come for a new classic group to begin its first rebalance before group.initial.rebalance.delay.ms is over; a value as large as that waits for all of it.", low=1),
    row("headrace.groups.max", INT, 100_000, "The most groups in one partition of the topic of group offsets.", low=1),
)  # fmt: skip

_TRANSACTIONS = (
    row("producer.id.expiration.ms", INT, DAY_MS, "How long an idle idempotent producer is remembered.", low=1, scope=CLUSTER),
    row("producer.id.expiration.check.interval.ms", INT, 10 * MINUTE_MS, "How often idle producers are looked for.", low=1, honoured=False),
    row("transaction.max.timeout.ms", INT, 15 * MINUTE_MS, "The longest transaction a producer may ask for.", low=1),
    row("transactional.id.expiration.ms", INT, 7 * DAY_MS, "How long an unused transactional id is remembered, and the last batch commit of a Spark sink.", low=1),
    row("transaction.state.log.num.partitions", INT, 50, "How many partitions the transaction topic has.", low=1),
    row("transaction.state.log.replication.factor", SHORT, 3, "How many replicas the transaction topic has.", low=1),
    row("transaction.state.log.min.isr", INT, 2, "The min.insync.replicas of the transaction topic.", low=1),
    row("transaction.state.log.segment.bytes", INT, 100 << 20, "The segment size of the transaction topic.", low=1),
    row("transaction.state.log.load.buffer.size", INT, 5 << 20, "The batch size when transactions are loaded.", low=1, honoured=False),
    row("share.coordinator.state.topic.num.partitions", INT, 50, "How many partitions the topic of share group state has.", low=1, honoured=False),
    row("share.coordinator.state.topic.replication.factor", SHORT, 3, "How many replicas the topic of share group state has.", low=1, honoured=False),
    row("share.coordinator.state.topic.min.isr", SHORT, 2, "The min.insync.replicas of the topic of share group state.", low=1, honoured=False),
    row("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, "How often transactions past their timeout are aborted.", low=1),
    row("transaction.remove.expired.transaction.cleanup.interval.ms", INT, HOUR_MS, "How often expired transactional ids are removed.", low=1),
    row("transaction.partition.verification.enable", BOOLEAN, True, "Whether a partition checks that it was added to the transaction written to it.", scope=CLUSTER, honoured=False),
)  # fmt: skip

_REPLICATION = (
    row("default.replication.factor", INT, 1, "How many replicas a topic gets when its creator does not say.", low=1),
    row("min.insync.replicas", INT, 1, "The default of the topic config min.insync.replicas.", low=1, scope=CLUSTER),
    row("unclean.leader.election.enable", BOOLEAN, False, "The default of the topic config unclean.leader.election.enable.", scope=CLUSTER, honoured=False),
    row("auto.leader.rebalance.enable", BOOLEAN, True, "Whether leadership returns to the preferred replica by itself.", honoured=False),
    row("leader.imbalance.check.interval.seconds", LONG, 300, "How often leadership balance is checked.", low=1, honoured=False),
    row("leader.imbalance.per.broker.percentage", INT, 10, "How much imbalance is left alone.", low=0, honoured=False),
    row("num.replica.fetchers", INT, 1, "How many connections a follower keeps to one leader.", low=1, scope=CLUSTER, honoured=False),
    row("replica.lag.time.max.ms", LONG, 30_000, "How long a follower may lag before it leaves the in-sync set.", low=1, honoured=False),
    row("replica.fetch.max.bytes", INT, 1 << 20, "How many bytes a follower asks for per partition.", low=0, honoured=False),
    row("replica.fetch.response.max.bytes", INT, 10 << 20, "How many bytes a follower asks for in one request.", low=0, honoured=False),
    row("replica.fetch.min.bytes", INT, 1, "How many bytes a follower waits for.", low=1, honoured=False),
    row("replica.fetch.wait.max.ms", INT, 500, "How long a follower's empty fetch waits at the leader.", low=1, honoured=False),
    row("replica.fetch.backoff.ms", INT, 1_000, "How long a follower rests after a failed fetch.", low=0, honoured=False),
    row("replica.socket.timeout.ms", INT, 30_000, "How long a follower waits for its leader's answer.", low=1, honoured=False),
    row("replica.socket.receive.buffer.bytes", INT, 64 << 10, "The receive buffer of replication connections.", low=-1, honoured=False),
    row("replica.high.watermark.checkpoint.interval.ms", LONG, 5_000, "How often the high watermarks are written to disk.", low=1),
    row("replica.selector.class", ConfigType.CLASS, None, "Which replica a consumer is told to read from.", honoured=False),
    row("inter.broker.listener.name", STRING, None, "The listener other brokers connect to; the first one when not given.", honoured=False),
    row("security.inter.broker.protocol", STRING, "PLAINTEXT", "The security protocol between brokers.", choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), refusal="brokers do not connect to each other in this release"),
)  # fmt: skip

_CONTROLLER = (
    row("process.roles", LIST, ("broker", "controller"), "The roles of this process; Headrace's one node always has both.", choices=("broker", "controller"), validator=wrong_roles),
    row("controller.listener.names", LIST, None, "Listeners meant for controllers; they are not opened, because the controller lives in the broker."),
    row("controller.quorum.voters", LIST, (), "The voters of the metadata quorum, as id@host:port: this node alone.", validator=wrong_quorum),
    row("controller.quorum.bootstrap.servers", LIST, (), "Where to find the metadata quorum: at this node alone.", validator=wrong_quorum),
    row("controller.quorum.election.timeout.ms", INT, 1_000, "How long a voter waits for a leader before it stands for election.", low=1, honoured=False),
    row("controller.quorum.fetch.timeout.ms", INT, 2_000, "How long a voter may fail to reach the leader.", low=1, honoured=False),
    row("controller.quorum.request.timeout.ms", INT, 2_000, "How long a quorum request may take.", low=1, honoured=False),
    row("broker.heartbeat.interval.ms", INT, 2_000, "How often a broker tells the controller that it lives.", low=1, honoured=False),
    row("broker.session.timeout.ms", INT, 9_000, "How long a silent broker counts as alive.", low=1, honoured=False),
    row("metadata.log.dir", STRING, None, "The folder of the metadata log; the first data folder when not given.", honoured=False),
    row("metadata.log.segment.bytes", INT, 1 << 30, "The segment size of the metadata log.", low=12, honoured=False),
    row("metadata.log.max.record.bytes.between.snapshots", LONG, 20 << 20, "How many bytes of metadata are written before the next snapshot.", low=1, honoured=False),
    row("metadata.log.max.snapshot.interval.ms", LONG, HOUR_MS, "How long metadata changes may wait for the next snapshot.", low=0, honoured=False),
    row("metadata.max.retention.ms", LONG, 7 * DAY_MS, "How long old metadata snapshots are kept.", low=0, honoured=False),
    row("metadata.max.retention.bytes", LONG, 100 << 20, "How many bytes of old metadata are kept.", low=-1, honoured=False),
    row("metadata.max.idle.interval.ms", INT, 500, "How often an idle quorum writes an empty record.", low=0, honoured=False),
)  # fmt: skip

COORDINATION_ROWS = (*_OFFSETS, *_GROUPS, *_GROUP_LIMITS, *_TRANSACTIONS, *_REPLICATION, *_CONTROLLER)

"""The table of broker configs: this node, its network and limits; with the rows of logs and coordination added."""
# ruff: noqa: E501  (one row is one line)

from headrace.model.configs.broker_coordination import COORDINATION_ROWS
from headrace.model.configs.broker_log import LOG_ROWS
from headrace.model.configs.definition import INT32_MAX, ConfigTable, ConfigType, Scope, row
from headrace.model.configs.listeners import (
    SECURITY_PROTOCOLS_DEFAULT,
    wrong_address,
    wrong_listeners,
    wrong_protocol_map,
)
from headrace.model.configs.topic import DAY_MS, MINUTE_MS, TOPIC_CONFIGS

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
LIST = ConfigType.LIST
CLUSTER = Scope.CLUSTER_WIDE

_NODE = (
    row("node.id", INT, 1, "The number of this node in the cluster.", low=0),
    row("broker.id", INT, None, "The older name of node.id.", low=0),
    row("broker.rack", STRING, None, "The rack this node stands in, for placing replicas."),
    row("num.partitions", INT, 1, "How many partitions a topic gets when its creator does not say.", low=1),
    row("auto.create.topics.enable", BOOLEAN, True, "Whether a topic is created when a client first asks for it."),
    row("delete.topic.enable", BOOLEAN, True, "Whether topics may be deleted."),
    row("background.threads", INT, 10, "How many helpers do background work.", low=1, scope=CLUSTER, honoured=False),
    row("num.network.threads", INT, 3, "How many threads read and answer requests; Headrace's loop is one.", low=1, scope=CLUSTER, honoured=False),
    row("num.io.threads", INT, 8, "How many threads carry out requests; Headrace's loop is one.", low=1, scope=CLUSTER, honoured=False),
    row("controlled.shutdown.enable", BOOLEAN, True, "Whether a stopping broker hands its partitions over first.", honoured=False),
)  # fmt: skip

_NETWORK = (
    row("listeners", LIST, ("PLAINTEXT://127.0.0.1:9092",), "The addresses to listen on, as NAME://host:port separated by commas.", validator=wrong_listeners),
    row("advertised.listeners", LIST, None, "The addresses clients are told to connect to; the listeners themselves when not given.", validator=wrong_listeners),
    row("listener.security.protocol.map", LIST, SECURITY_PROTOCOLS_DEFAULT, "Which security protocol each listener name uses; only PLAINTEXT is served yet.", validator=wrong_protocol_map),
    row("socket.request.max.bytes", INT, 100 << 20, "The largest request accepted.", low=1),
    row("socket.send.buffer.bytes", INT, 100 << 10, "The send buffer asked of the system for each connection; -1 leaves the system's.", low=-1, honoured=False),
    row("socket.receive.buffer.bytes", INT, 100 << 10, "The receive buffer asked of the system for each connection; -1 leaves the system's.", low=-1, honoured=False),
    row("socket.listen.backlog.size", INT, 50, "How many connections may wait to be accepted.", low=1, honoured=False),
    row("queued.max.requests", INT, 500, "How many requests may wait for a thread; Headrace counts bytes instead (headrace.total.inflight.bytes.max).", low=1, honoured=False),
    row("queued.max.request.bytes", LONG, -1, "As headrace.total.inflight.bytes.max, by Kafka's name; -1 leaves that one in force.", low=-1),
    row("request.timeout.ms", INT, 30_000, "How long a request to another broker may take.", low=1, honoured=False),
    row("connections.max.idle.ms", LONG, 10 * MINUTE_MS, "How long a connection may be silent before it is closed.", low=1),
    row("connection.failed.authentication.delay.ms", INT, 100, "How long the answer to a failed login is held back.", low=0, honoured=False),
    row("max.connections", INT, INT32_MAX, "How many connections the broker holds at once.", low=0, scope=CLUSTER),
    row("max.connections.per.ip", INT, INT32_MAX, "How many connections one client address may hold.", low=0, scope=CLUSTER),
    row("max.connections.per.ip.overrides", STRING, "", "Connection limits of single client addresses, as host:count separated by commas.", scope=CLUSTER, refusal="limits of single addresses are not served, set max.connections.per.ip for all of them"),
    row("max.connection.creation.rate", INT, INT32_MAX, "How many connections are accepted in a second.", low=0, scope=CLUSTER, refusal="the rate of new connections is not limited, set max.connections or max.connections.per.ip"),
    row("fetch.max.bytes", INT, 55 << 20, "The most bytes one fetch answers, whatever the client asks for.", low=1024),
    row("max.incremental.fetch.session.cache.slots", INT, 1_000, "How many fetch sessions are remembered.", low=0),
    row("max.request.partition.size.limit", INT, 2_000, "How many partitions one DescribeTopicPartitions answer lists.", low=1),
)  # fmt: skip

_POLICY = (
    row("auto.include.jmx.reporter", BOOLEAN, True, "A setting of the Java broker; metrics are at headrace.metrics.listen.", honoured=False),
    row("metric.reporters", LIST, (), "A setting of the Java broker; metrics are at headrace.metrics.listen.", scope=CLUSTER, refusal="classes of Java cannot be loaded, metrics are at headrace.metrics.listen"),
    row("metrics.num.samples", INT, 2, "A setting of the Java broker; metrics are at headrace.metrics.listen.", low=1, honoured=False),
    row("metrics.sample.window.ms", LONG, 30_000, "A setting of the Java broker; metrics are at headrace.metrics.listen.", low=1, honoured=False),
    row("quota.window.num", INT, 11, "How many windows a quota looks back.", low=1, honoured=False),
    row("quota.window.size.seconds", INT, 1, "How long a quota's window is.", low=1, honoured=False),
    row("remote.log.storage.system.enable", BOOLEAN, False, "Whether closed segments may be kept in remote storage.", refusal="tiered storage is not served, segments stay on the disks of the broker"),
    row("authorizer.class.name", STRING, "", "What decides on access.", refusal="access control is not served, every client that can connect may do everything"),
    row("super.users", STRING, "", "Principals that may do everything.", honoured=False),
    row("sasl.enabled.mechanisms", LIST, ("GSSAPI",), "Which SASL mechanisms clients may use.", scope=Scope.PER_BROKER, honoured=False),
    row("sasl.server.max.receive.size", INT, 512 << 10, "The largest request accepted before a client has logged in.", low=1, honoured=False),
    row("ssl.client.auth", STRING, "none", "Whether clients must show a certificate.", choices=("required", "requested", "none"), scope=Scope.PER_BROKER, honoured=False),
)  # fmt: skip

_HEADRACE = (
    row("headrace.connection.inflight.bytes.max", LONG, 16 << 20, "How many bytes of answers one connection may hold up before it is no longer read.", low=1 << 10),
    row("headrace.total.inflight.bytes.max", LONG, 512 << 20, "How many bytes the large requests of all connections together may take while they arrive.", low=1 << 10),
    row("headrace.slow.client.timeout.ms", LONG, MINUTE_MS, "How long a client may leave a begun request unfinished or an answer unread before it is disconnected.", low=1),
    row("headrace.metrics.listen", STRING, "", "The host:port of the Prometheus endpoint; empty for none.", validator=wrong_address),
    row("headrace.disk.free.min.bytes", LONG, 256 << 20, "The free disk space below which produce is refused with a retriable error, until there is more again.", low=0, scope=CLUSTER),
    row("headrace.scan.held.bytes.max", LONG, 16 << 30, "How many bytes that are deleted from their topics are kept for scans that read them; beyond it the scan that keeps most loses its files.", low=0, scope=CLUSTER),
    row("headrace.scrub.interval.ms", LONG, 7 * DAY_MS, "How often every closed segment is read again to see whether it is still what was written; 0 never.", low=0, scope=CLUSTER),
    row("headrace.scrub.bytes.per.second", LONG, 8 << 20, "How fast closed segments are read again.", low=1 << 10, scope=CLUSTER),
    row("headrace.unclean.tail.bytes.max", LONG, 64 << 20, "How many bytes per partition may lie beyond the recovery point, to be scanned after a crash.", low=1 << 20),
    row("headrace.preallocate.bytes", LONG, 16 << 20, "How far ahead of its end a busy segment is reserved on disk; 0 reserves nothing.", low=0, high=64 << 20),
    row("headrace.open.files.max", INT, 4_096, "How many log files are kept open.", low=16),
    row("headrace.topics.max", INT, 100_000, "How many topics the cluster may hold.", low=1),
    row("headrace.partitions.max", INT, 200_000, "How many partitions the cluster may hold.", low=1),
    row("headrace.shutdown.timeout.ms", LONG, 30_000, "How long a stopping broker lets running requests end.", low=0),
    row("headrace.log.format", STRING, "console", "How the broker writes its own log: console for people, json for machines.", choices=("console", "json")),
    row("headrace.log.level", STRING, "info", "The least important message that is still logged.", choices=("debug", "info", "warning", "error")),
)  # fmt: skip

_ROWS = (*_NODE, *_NETWORK, *_POLICY, *_HEADRACE, *LOG_ROWS, *COORDINATION_ROWS)

BROKER_CONFIGS = ConfigTable(
    "broker",
    sorted(_ROWS, key=lambda key: key.name),
    renamed={
        key.name: key.counterparts[0].name
        for key in TOPIC_CONFIGS
        if key.counterparts and key.counterparts[0].name != key.name
    }
    | {"bootstrap.servers": "listeners", "data.dir": "log.dirs", "port": "listeners", "host.name": "listeners"},
)

"""Table of broker configs: the node, its network and its limits, plus the rows for logs and coordination."""
# ruff: noqa: E501  (one row is one line)

from headrace.model.configs.audit import AUDIT_ROWS
from headrace.model.configs.broker_coordination import COORDINATION_ROWS
from headrace.model.configs.broker_log import LOG_ROWS
from headrace.model.configs.broker_security import (
    ACCESS_ROWS,
    OAUTH_ROWS,
    PREFIXED,
    SASL_ROWS,
    SECRET_ROWS,
    TLS_ROWS,
    TOKEN_ROWS,
)
from headrace.model.configs.definition import INT32_MAX, ConfigTable, ConfigType, Scope, row
from headrace.model.configs.listeners import (
    SECURITY_PROTOCOLS_DEFAULT,
    address_error,
    listeners_error,
    overrides_error,
    protocol_map_error,
)
from headrace.model.configs.topic import DAY_MS, MINUTE_MS, TOPIC_CONFIGS

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
LIST = ConfigType.LIST
CLUSTER = Scope.CLUSTER_WIDE

_NODE = (
    row("node.id", INT, 1, "The node id of this broker.", low=0),
    row("broker.id", INT, None, "The former name of node.id.", low=0),
    row("broker.rack", STRING, None, "The rack of this broker, used to place replicas."),
    row("num.partitions", INT, 1, "The default number of partitions of a new topic.", low=1),
    row("auto.create.topics.enable", BOOLEAN, True, "Whether a topic is created automatically when a client first requests it."),
    row("delete.topic.enable", BOOLEAN, True, "Whether topics may be deleted."),
    row("background.threads", INT, 10, "The number of threads for background work.", low=1, scope=CLUSTER, honoured=False),
    row("num.network.threads", INT, 3, "The number of network threads; Headrace uses one loop.", low=1, scope=CLUSTER, honoured=False),
    row("num.io.threads", INT, 8, "The number of request threads; Headrace uses one loop.", low=1, scope=CLUSTER, honoured=False),
    row("controlled.shutdown.enable", BOOLEAN, True, "Whether a broker transfers the leadership of its partitions before it stops.", honoured=False),
)  # fmt: skip

_NETWORK = (
    row("listeners", LIST, ("PLAINTEXT://127.0.0.1:9092",), "The addresses to listen on: a comma-separated list of NAME://host:port.", validator=listeners_error),
    row("advertised.listeners", LIST, None, "The addresses that clients use to connect; defaults to listeners.", validator=listeners_error),
    row("listener.security.protocol.map", LIST, SECURITY_PROTOCOLS_DEFAULT, "The security protocol of each listener name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.", validator=protocol_map_error),
    row("socket.request.max.bytes", INT, 100 << 20, "The maximum size of a request. The broker closes the connection as soon as it reads a larger size, logs it and counts it in headrace_protocol_errors_total. Most APIs have a lower limit: REQUEST_BYTES_MAX in docs/reference/limits.md.", low=1),
    row("socket.send.buffer.bytes", INT, 100 << 10, "The socket send buffer of each connection; -1 uses the system default.", low=-1, honoured=False),
    row("socket.receive.buffer.bytes", INT, 100 << 10, "The socket receive buffer of each connection; -1 uses the system default.", low=-1, honoured=False),
    row("socket.listen.backlog.size", INT, 50, "The maximum number of connections that wait to be accepted.", low=1, honoured=False),
    row("queued.max.requests", INT, 500, "The maximum number of queued requests; Headrace limits bytes instead (headrace.total.inflight.bytes.max).", low=1, honoured=False),
    row("queued.max.request.bytes", LONG, -1, "Kafka's name of headrace.total.inflight.bytes.max; -1 uses the value of that config.", low=-1),
    row("request.timeout.ms", INT, 30_000, "The timeout of a request to another broker.", low=1, honoured=False),
    row("connections.max.idle.ms", LONG, 10 * MINUTE_MS, "The idle time after which a connection is closed.", low=1),
    row("max.connections", INT, INT32_MAX, "The maximum number of connections of the broker. As listener.name.NAME.max.connections it is for one listener.", low=0, scope=CLUSTER),
    row("max.connections.per.ip", INT, INT32_MAX, "The maximum number of connections of one client address.", low=0, scope=CLUSTER),
    row("max.connections.per.ip.overrides", LIST, (), "Connection limits of individual client addresses: a comma-separated list of address:count.", scope=CLUSTER, validator=overrides_error),
    row("max.connection.creation.rate", INT, INT32_MAX, "The maximum number of new connections per second; further ones wait. As listener.name.NAME.max.connection.creation.rate it is for one listener.", low=0, scope=CLUSTER),
    row("fetch.max.bytes", INT, 55 << 20, "The maximum size of a fetch response, regardless of the request.", low=1024),
    row("max.incremental.fetch.session.cache.slots", INT, 1_000, "The maximum number of fetch sessions.", low=0),
    row("max.request.partition.size.limit", INT, 2_000, "The maximum number of partitions in a DescribeTopicPartitions response.", low=1),
)  # fmt: skip

_POLICY = (
    row("auto.include.jmx.reporter", BOOLEAN, True, "A config of the Java broker; Headrace serves metrics at headrace.metrics.listen.", honoured=False),
    row("metric.reporters", LIST, (), "A config of the Java broker; Headrace serves metrics at headrace.metrics.listen.", scope=CLUSTER, refusal="Java classes cannot be loaded, metrics are served at headrace.metrics.listen"),
    row("metrics.num.samples", INT, 2, "A config of the Java broker; Headrace serves metrics at headrace.metrics.listen.", low=1, honoured=False),
    row("metrics.sample.window.ms", LONG, 30_000, "A config of the Java broker; Headrace serves metrics at headrace.metrics.listen.", low=1, honoured=False),
    row("quota.window.num", INT, 11, "The number of sample windows of a quota; Headrace lets clients use the units of one window at once.", low=1, honoured=False),
    row("quota.window.size.seconds", INT, 1, "The time in which a client that was quiet saves up a quota of bytes or of request time, to use it at once.", low=1),
    row("controller.quota.window.num", INT, 11, "The number of windows for which a client saves up its quota of created and deleted partitions, to use it at once.", low=1),
    row("controller.quota.window.size.seconds", INT, 1, "The duration of a window of controller.quota.window.num.", low=1),
    row("remote.log.storage.system.enable", BOOLEAN, False, "Whether closed segments may be kept in remote storage.", refusal="tiered storage is not supported, segments stay on the disks of the broker"),
)  # fmt: skip

_HEADRACE = (
    row("headrace.connection.inflight.bytes.max", LONG, 16 << 20, "The unsent response bytes of a connection from which the broker stops reading its requests.", low=1 << 10),
    row("headrace.total.inflight.bytes.max", LONG, 512 << 20, "The maximum memory for incoming large requests of all connections together.", low=1 << 10),
    row("headrace.slow.client.timeout.ms", LONG, MINUTE_MS, "The time after which a client is disconnected that does not complete a request or does not read a response.", low=1),
    row("headrace.metrics.listen", STRING, "", "The host:port of the Prometheus endpoint; empty disables it.", validator=address_error),
    row("headrace.disk.free.min.bytes", LONG, 256 << 20, "The free disk space below which produce requests are refused with a retriable error.", low=0, scope=CLUSTER),
    row("headrace.scan.held.bytes.max", LONG, 16 << 30, "The maximum size of deleted segments that are kept for running scans; above it, the scan that holds most loses its files.", low=0, scope=CLUSTER),
    row("headrace.scrub.interval.ms", LONG, 7 * DAY_MS, "The interval at which every closed segment is read and verified; 0 disables it.", low=0, scope=CLUSTER),
    row("headrace.scrub.bytes.per.second", LONG, 8 << 20, "The maximum rate at which closed segments are verified.", low=1 << 10, scope=CLUSTER),
    row("headrace.unclean.tail.bytes.max", LONG, 64 << 20, "A flush starts when half of this size of a partition is not synced. It keeps the scan after a crash short; records that arrive during the flush come on top.", low=1 << 20),
    row("headrace.preallocate.bytes", LONG, 16 << 20, "The disk space that is preallocated ahead of the end of a busy segment; 0 preallocates nothing.", low=0, high=64 << 20),
    row("headrace.open.files.max", INT, 4_096, "The maximum number of open log files.", low=16),
    row("headrace.topics.max", INT, 100_000, "The maximum number of topics in the cluster.", low=1),
    row("headrace.partitions.max", INT, 200_000, "The maximum number of partitions in the cluster.", low=1),
    row("headrace.shutdown.timeout.ms", LONG, 30_000, "The time that a stopping broker waits for running requests.", low=0),
    row("headrace.log.format", STRING, "console", "The format of the broker's own log: console for people, json for programs.", choices=("console", "json")),
    row("headrace.log.level", STRING, "info", "The lowest level of messages that are logged.", choices=("debug", "info", "warning", "error")),
)  # fmt: skip

_ROWS = (
    *_NODE,
    *_NETWORK,
    *_POLICY,
    *_HEADRACE,
    *TLS_ROWS,
    *SASL_ROWS,
    *OAUTH_ROWS,
    *TOKEN_ROWS,
    *ACCESS_ROWS,
    *SECRET_ROWS,
    *AUDIT_ROWS,
    *LOG_ROWS,
    *COORDINATION_ROWS,
)

BROKER_CONFIGS = ConfigTable(
    "broker",
    sorted(_ROWS, key=lambda key: key.name),
    renamed={
        key.name: key.counterparts[0].name
        for key in TOPIC_CONFIGS
        if key.counterparts and key.counterparts[0].name != key.name
    }
    | {"bootstrap.servers": "listeners", "data.dir": "log.dirs", "port": "listeners", "host.name": "listeners"},
    prefixed=PREFIXED,
)

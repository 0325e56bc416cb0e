"""Settings of clients: one typed object for each kind, created from keywords or from Kafka's own names.

ConsumerConfig(group_id="billing", auto_offset_reset="earliest")
ConsumerConfig.from_names({"group.id": "billing", "auto.offset.reset": "earliest"})
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from headrace.client.addresses import parse_bootstrap
from headrace.client.config_types import check_types
from headrace.client.errors import InvalidArgument
from headrace.client.foreign_names import hint_for
from headrace.client.telemetry import Telemetry
from headrace.model.nearest_names import nearest_of
from headrace.wire.records.compression import Compression

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

SerializerName = Literal["str", "json", "msgpack"]
Serializer = SerializerName | Callable[[Any], bytes | None]
Deserializer = SerializerName | Callable[[bytes], Any]
Partitioner = Callable[[str, bytes | None, int], int]
"""(topic, key, number of partitions) -> partition"""

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Settings that every client has."""

    KAFKA_NAMES: ClassVar[Mapping[str, str]] = {"sasl.mechanisms": "sasl_mechanism"}
    """Kafka's names that differ from these names by more than dots for underscores; they are also accepted with
    underscores.
    """

    bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP
    """host:port of some brokers, separated by commas or as a list; the client learns the others from them."""

    client_id: str = "headrace"
    request_timeout_ms: int = 30_000
    metadata_max_age_ms: int = 300_000
    """Age at which metadata is refreshed, so how soon a pattern finds new topics; new leaders are learned from
    errors.
    """

    security_protocol: SecurityProtocol = "PLAINTEXT"
    ssl_ca_location: str | None = None
    """A file with the certificates to trust; without it, those of the system."""

    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_check_hostname: bool = True
    sasl_mechanism: SaslMechanism = "PLAIN"
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    sasl_tokenauth: bool = False
    """True if `sasl_username` is the id of a delegation token and `sasl_password` its password, for SCRAM."""
    sasl_oauth_token: Callable[[], str] | None = None
    """A function that returns a token for OAUTHBEARER, called for every connection."""

    telemetry: Telemetry | None = None
    """Spans, trace context in headers and metrics, as in `headrace.otel.OpenTelemetry`; None: no telemetry."""

    def __post_init__(self) -> None:
        check_types(self)
        parse_bootstrap(self.bootstrap_servers)
        _check_positive(self, "request_timeout_ms", "metadata_max_age_ms")
        _check_choice("security_protocol", self.security_protocol, get_args(SecurityProtocol))
        _check_choice("sasl_mechanism", self.sasl_mechanism, get_args(SaslMechanism))
        _check_protocol(self, "SASL", "sasl_username", "sasl_password", "sasl_tokenauth", "sasl_oauth_token")
        _check_protocol(self, "SSL", "ssl_ca_location", "ssl_certificate_location", "ssl_key_location")

    def servers(self) -> str:
        """Return the bootstrap servers as one string."""
        return self.bootstrap_servers if isinstance(self.bootstrap_servers, str) else ",".join(self.bootstrap_servers)

    @classmethod
    def field_name(cls, name: str) -> str:
        """Return the name of the field for Kafka's name of a setting, or for the field's own."""
        return cls.KAFKA_NAMES.get(name.replace("_", "."), name.replace(".", "_"))

    @classmethod
    def from_names(cls, names: Mapping[str, Any]) -> Self:
        """Create a config from Kafka's names or these, with values as such or as text; an unknown name raises with a
        suggestion.
        """
        own = {field.name: field for field in fields(cls)}
        types = get_type_hints(cls)
        found: dict[str, Any] = {}
        for name, value in names.items():
            if not isinstance(name, str):
                raise InvalidArgument(f"the name of a setting is a string, not {name!r}")
            key = cls.field_name(name)
            if key not in own:
                raise InvalidArgument(_unknown(name, own, cls.__name__))
            if key in found:
                raise InvalidArgument(f"{name} is given twice, under two names; leave one out")
            found[key] = _parsed(name, value, types[key]) if isinstance(value, str) else value
        return cls(**found)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminConfig(ClientConfig):
    timeout_ms: int = 30_000
    """Time limit of each call."""

    def __post_init__(self) -> None:
        super(AdminConfig, self).__post_init__()
        _check_positive(self, "timeout_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    KAFKA_NAMES: ClassVar[Mapping[str, str]] = {
        **ClientConfig.KAFKA_NAMES,
        "compression.codec": "compression",
        "compression.type": "compression",
        "enable.idempotence": "idempotent",
        "partitioner.class": "partitioner",
    }

    acks: Literal["all", 1, 0] = "all"
    idempotent: bool | None = None
    """No duplicates or reordering by retries; None: on with acks="all"."""

    compression: str = "none"
    """none, gzip, snappy, lz4 or zstd."""

    linger_ms: float = 5
    """Time that a batch waits for more records."""

    batch_size: int = 16 * 1024
    max_request_size: int = 1024 * 1024
    buffer_memory: int = 32 * 1024 * 1024
    """Bytes that may wait to be sent; beyond that `send` waits, at most `max_block_ms`."""

    max_block_ms: float = 60_000
    max_in_flight_requests_per_connection: int = 5
    delivery_timeout_ms: float = 120_000
    retry_backoff_ms: float = 100
    partitioner: Literal["murmur2", "hash", "round-robin"] | Partitioner = "murmur2"
    """Chooses the partition of records without one. murmur2: by key as the Java client, and in sticky batches without a
    key.
    """

    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None

    def __post_init__(self) -> None:
        super(ProducerConfig, self).__post_init__()
        known = [codec.name.lower() for codec in Compression]
        if not isinstance(self.compression, str) or self.compression.lower() not in known:
            raise InvalidArgument(f"unknown compression {self.compression!r}; use one of {', '.join(known)}")
        _check_choice("acks", self.acks, ("all", -1, 1, 0, "1", "0", "-1"))
        _check_positive(
            self, "batch_size", "max_request_size", "buffer_memory", "delivery_timeout_ms", "retry_backoff_ms"
        )
        _check_positive(self, "max_in_flight_requests_per_connection", "transaction_timeout_ms")
        _check_not_negative(self, "linger_ms", "max_block_ms")
        _check_serializer("key_serializer", self.key_serializer)
        _check_serializer("value_serializer", self.value_serializer)
        if isinstance(self.partitioner, str):
            _check_choice("partitioner", self.partitioner, ("murmur2", "hash", "round-robin"))
        is_all = str(self.acks) in ("all", "-1")
        if (self.idempotent or self.transactional_id is not None) and not is_all:
            raise InvalidArgument('an idempotent or transactional producer needs acks="all"')
        if self.transactional_id is not None and self.idempotent is False:
            raise InvalidArgument("a transactional producer is always idempotent: leave out idempotent")
        if self.transactional_id == "":
            raise InvalidArgument("a transactional id must not be empty")
        if self.max_in_flight_requests_per_connection > 5 and self.idempotent is not False and is_all:
            raise InvalidArgument("an idempotent producer may have at most five requests in flight")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    group_id: str | None = None
    group_instance_id: str | None = None
    """Makes the consumer a static member: restarts within the session timeout move no partitions."""

    group_protocol: Literal["classic", "consumer"] = "classic"
    """consumer: the protocol of KIP-848, in which the broker assigns."""

    group_remote_assignor: str | None = None
    partition_assignment_strategy: str | Sequence[str] = ("range", "cooperative-sticky")
    """For classic groups, in order of preference: range, roundrobin, cooperative-sticky."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    auto_offset_reset: Literal["earliest", "latest", "none"] = "latest"
    unknown_topics: Literal["wait", "raise"] = "wait"
    """For a topic that does not exist: log it once and start when it appears, or raise BrokerError after 5 seconds."""

    allow_auto_create_topics: bool = True
    """Let a broker with auto.create.topics.enable create the topics named here; a pattern creates none."""

    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    max_poll_records: int = 500
    fetch_max_wait_ms: int = 500
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 * 1024 * 1024
    max_partition_fetch_bytes: int | None = None
    """None: 1 MiB as in the Java client, or 2 MiB while only a few partitions are read. The client may hold twice as
    much.
    """

    check_crcs: bool = True
    client_rack: str | None = None
    """The rack of this consumer: brokers that support it return the nearest replica to read from."""

    consumer_timeout_ms: float | None = None
    """Ends the iteration when no record arrived for that long; None waits for ever."""

    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None

    def __post_init__(self) -> None:
        super(ConsumerConfig, self).__post_init__()
        _check_choice("auto_offset_reset", self.auto_offset_reset, ("earliest", "latest", "none"))
        _check_choice("isolation_level", self.isolation_level, ("read_uncommitted", "read_committed"))
        _check_choice("unknown_topics", self.unknown_topics, ("wait", "raise"))
        _check_choice("group_protocol", self.group_protocol, ("classic", "consumer"))
        _check_positive(self, "max_poll_records", "fetch_max_bytes", "max_partition_fetch_bytes")
        _check_positive(self, "session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms")
        _check_positive(self, "auto_commit_interval_ms")
        _check_not_negative(self, "fetch_max_wait_ms", "fetch_min_bytes", "consumer_timeout_ms")
        _check_serializer("key_deserializer", self.key_deserializer)
        _check_serializer("value_deserializer", self.value_deserializer)
        if self.group_id == "":
            raise InvalidArgument("a group id must not be empty: leave it out to read without a group")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise InvalidArgument(
                "heartbeat_interval_ms must be below session_timeout_ms; a third of it is a good choice"
            )
        for name in self.assignors():
            _check_choice("partition_assignment_strategy", name, ("range", "roundrobin", "cooperative-sticky"))

    def assignors(self) -> tuple[str, ...]:
        strategy = self.partition_assignment_strategy
        return tuple(strategy.replace(" ", "").split(",")) if isinstance(strategy, str) else tuple(strategy)


def _check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    if value not in choices:
        known = ", ".join(str(each) for each in dict.fromkeys(map(str, choices)))
        raise InvalidArgument(f"{name} must be one of {known}, not {value!r}")


def _check_protocol(config: ClientConfig, part: str, *names: str) -> None:
    """Refuse settings that would be ignored silently, most often because the protocol was forgotten."""
    if part in config.security_protocol.split("_"):
        return
    for name in names:
        if getattr(config, name) not in (None, False):
            usable = [each for each in get_args(SecurityProtocol) if part in each.split("_")]
            raise InvalidArgument(
                f"{name} has no effect with security_protocol {config.security_protocol!r}: set that to "
                f"{' or '.join(usable)}, or leave {name} out"
            )


def _check_serializer(name: str, chosen: object) -> None:
    if chosen is not None and not callable(chosen):
        _check_choice(name, chosen, get_args(SerializerName))


def _check_positive(config: ClientConfig, *names: str) -> None:
    for name in names:
        number = getattr(config, name)
        if number is not None and number <= 0:
            raise InvalidArgument(f"{name} must be above zero, not {number!r}")


def _check_not_negative(config: ClientConfig, *names: str) -> None:
    for name in names:
        number = getattr(config, name)
        if number is not None and number < 0:
            raise InvalidArgument(f"{name} must not be negative, but is {number!r}")


def _unknown(name: str, own: Mapping[str, Any], kind: str) -> str:
    hint = hint_for(name)
    if hint is None:
        nearest = nearest_of(name.replace(".", "_"), own)
        if nearest is None:
            hint = f"{kind} in headrace.client.config lists all settings"
        else:
            hint = f"did you mean {nearest.replace('_', '.' if '.' in name else '_')!r}?"
    return f"unknown setting {name!r}: {hint}"


def _parsed(name: str, text: str, wanted: Any) -> Any:
    """Parse a value that is given as text, as in a properties file."""
    kinds = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)
    if str in kinds or any(get_origin(kind) is Literal for kind in kinds):
        return int(text) if text.lstrip("-").isdecimal() and name == "acks" else text
    try:
        if bool in kinds:
            return {"true": True, "false": False}[text.strip().lower()]
        if int in kinds:
            return int(text)
        if float in kinds:
            return float(text)
    except (KeyError, ValueError):
        raise InvalidArgument(f"{name} cannot be {text!r}") from None
    raise InvalidArgument(f"{name} cannot be given as text")


def refuse_settings(given: object) -> None:
    """Refuse a dict as first argument, which is where confluent-kafka takes its settings."""
    if isinstance(given, Mapping):
        raise InvalidArgument("pass a dict of settings by name, as in config={'bootstrap.servers': 'host:9092'}")


def resolve_config(
    kind: type[Any], config: Any, bootstrap_servers: str | Sequence[str] | None, options: Mapping[str, Any]
) -> Any:
    """Return the config object of that kind: as given, or from names, with the keywords applied over it."""
    refuse_settings(bootstrap_servers)
    if bootstrap_servers is not None:
        options = {**options, "bootstrap_servers": bootstrap_servers}
    if config is None:
        return kind.from_names(options)
    if isinstance(config, Mapping):
        return kind.from_names({**config, **options})
    if not isinstance(config, kind):
        raise InvalidArgument(f"config must be a {kind.__name__} or a dict of names, not {type(config).__name__}")
    if not options:
        return config
    given = {field.name: getattr(config, field.name) for field in fields(kind)}
    return kind.from_names({**given, **options})

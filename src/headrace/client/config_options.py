"""The keywords of the clients, including Kafka's names, for type checkers and completion."""

from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

from headrace.client.config import Deserializer, Partitioner, SaslMechanism, SecurityProtocol, Serializer
from headrace.client.telemetry import Telemetry


class ClientOptions(TypedDict, total=False):
    """The keywords of every client, explained at `ClientConfig`."""

    client_id: str
    request_timeout_ms: int
    metadata_max_age_ms: int
    security_protocol: SecurityProtocol
    ssl_ca_location: str | None
    ssl_certificate_location: str | None
    ssl_key_location: str | None
    ssl_key_password: str | None
    ssl_check_hostname: bool
    sasl_mechanism: SaslMechanism
    sasl_mechanisms: SaslMechanism
    sasl_username: str | None
    sasl_password: str | None
    sasl_tokenauth: bool
    sasl_oauth_token: Callable[[], str] | None
    telemetry: Telemetry | None


class AdminOptions(ClientOptions, total=False):
    timeout_ms: int


class ProducerOptions(ClientOptions, total=False):
    acks: Literal["all", 1, 0]
    idempotent: bool | None
    enable_idempotence: bool | None
    compression: str
    compression_codec: str
    compression_type: str
    linger_ms: float
    batch_size: int
    max_request_size: int
    buffer_memory: int
    max_block_ms: float
    max_in_flight_requests_per_connection: int
    delivery_timeout_ms: float
    retry_backoff_ms: float
    partitioner: Literal["murmur2", "hash", "round-robin"] | Partitioner
    partitioner_class: Literal["murmur2", "hash", "round-robin"] | Partitioner
    transactional_id: str | None
    transaction_timeout_ms: int
    key_serializer: Serializer | None
    value_serializer: Serializer | None


class ConsumerOptions(ClientOptions, total=False):
    """`value_deserializer` is not included: it has its own parameter, which determines the type of the values."""

    group_id: str | None
    group_instance_id: str | None
    group_protocol: Literal["classic", "consumer"]
    group_remote_assignor: str | None
    partition_assignment_strategy: str | Sequence[str]
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: Literal["earliest", "latest", "none"]
    unknown_topics: Literal["wait", "raise"]
    allow_auto_create_topics: bool
    isolation_level: Literal["read_uncommitted", "read_committed"]
    max_poll_records: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int | None
    check_crcs: bool
    client_rack: str | None
    consumer_timeout_ms: float | None
    key_deserializer: Deserializer | None


EXISTING_TOPICS: ConsumerOptions = {"allow_auto_create_topics": False, "unknown_topics": "raise"}
"""For tools that have looked up their topics: a topic that is deleted meanwhile is an error, and stays deleted."""

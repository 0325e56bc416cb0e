"""The one Kafka client: a sans-IO core and the fronts that drive it.

    from headrace.client import Admin, Consumer, NewTopic, Producer, TopicPartition, LATEST

    with Admin("127.0.0.1:9092") as admin:
        admin.create_topics([NewTopic("orders", partitions=4)])
        admin.offsets({TopicPartition("orders", 0): LATEST})
    with Producer(bootstrap_servers="127.0.0.1:9092") as producer:
        delivery = producer.send("orders", b"value", key=b"key", headers=[("trace", b"1")])
        delivery.result(timeout_ms=10_000).offset
    with Consumer("orders", bootstrap_servers="127.0.0.1:9092", auto_offset_reset="earliest") as consumer:
        for record in consumer:
            record.topic, record.partition, record.offset, record.timestamp, record.key, record.value, record.headers

`core/` decides and never waits: its input is bytes, responses and the time, its output requests and results.
`blocking/` is the front for blocking calls. Errors are in `headrace.client.errors`; all of them are `ClientError`s.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.client.types import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ActiveProducer,
    ApiRange,
    Broker,
    ChangedPartition,
    ChangedTopic,
    ClientConnection,
    ClusterDescription,
    ClusterInvitation,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    ConsumerRecord,
    DelegationToken,
    DeletedRecords,
    EntityQuotas,
    FeatureDescription,
    GroupIdentity,
    IsolationLevel,
    LogDirDescription,
    MetadataChanges,
    NewScramUser,
    NewTopic,
    OffsetAndMetadata,
    OffsetAt,
    Outcome,
    PartitionDescription,
    PartitionProducers,
    PartitionReassignment,
    PreparedTransaction,
    QuorumDescription,
    QuorumReplica,
    RecordMetadata,
    RegisteredBroker,
    ReplicaSize,
    ResourceType,
    ScramCredential,
    ScramMechanism,
    TopicChangeKind,
    TopicDescription,
)
from headrace.model.ids import TopicPartition

if TYPE_CHECKING:
    from headrace.client.blocking.admin import Admin
    from headrace.client.blocking.consumer import Consumer
    from headrace.client.blocking.delivery import Delivery
    from headrace.client.blocking.producer import Producer

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "ActiveProducer",
    "Admin",
    "ApiRange",
    "Broker",
    "ChangedPartition",
    "ChangedTopic",
    "ClientConnection",
    "ClusterDescription",
    "ClusterInvitation",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "Consumer",
    "ConsumerRecord",
    "DelegationToken",
    "DeletedRecords",
    "Delivery",
    "EntityQuotas",
    "FeatureDescription",
    "GroupIdentity",
    "IsolationLevel",
    "LogDirDescription",
    "MetadataChanges",
    "NewScramUser",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetAt",
    "Outcome",
    "PartitionDescription",
    "PartitionProducers",
    "PartitionReassignment",
    "PreparedTransaction",
    "Producer",
    "QuorumDescription",
    "QuorumReplica",
    "RecordMetadata",
    "RegisteredBroker",
    "ReplicaSize",
    "ResourceType",
    "ScramCredential",
    "ScramMechanism",
    "TopicChangeKind",
    "TopicDescription",
    "TopicPartition",
]

_FRONTS = {
    "Admin": "headrace.client.blocking.admin",
    "Consumer": "headrace.client.blocking.consumer",
    "Delivery": "headrace.client.blocking.delivery",
    "Producer": "headrace.client.blocking.producer",
}


def __getattr__(name: str) -> Any:
    """Import the blocking fronts on first use: the broker uses the core without them."""
    if name in _FRONTS:
        return getattr(import_module(_FRONTS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, imported or not, for completion."""
    return [*__all__, "__doc__", "__file__", "__name__", "__path__", "config", "errors", "serializers"]

"""One request for every API, or several where the API checks different operations: about a name that they are given."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace.core.access.acls import PatternType, Permission
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.schemas.notation import Field, Message, Struct
from tests.wire import samples

TOPIC, GROUP, CLUSTER, ID = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
NAMES = frozenset(
    ("name", "topic", "topic_name", "group_id", "transactional_id", "transactional_ids", "owner", "resource_name",
     "coordinator_keys", "groups", "groups_names", "group_ids", "subscribed_topic_names")
)  # fmt: skip
"""Fields that carry the name."""

CONSUMER_GROUP = "-k"
"""Ends the name of a group of KIP-848 members."""

TIMEOUT_MS = 10_000
PRODUCER_ID, PRODUCER_EPOCH = 7, 0


class AccessCase(NamedTuple):
    key: ApiKey
    error: ErrorCode | None
    """The error of a client without rights; None if its response leaves out what it may not see."""
    fields: Mapping[str, Any] = {}
    """Values of fields, at any depth, or functions of the name."""
    version: int = -1
    """-1 for the newest."""
    lists_topics: bool = False
    """True if the response leaves out the topics that the client may not see."""

    @property
    def table(self) -> Message:
        return next(
            each for each in samples.MESSAGES.values() if each.kind == "Request" and each.api_key == int(self.key)
        )

    def request(self, name: str, version: int) -> Any:
        return self._filled(self.table.name, self.table.fields, name, version)

    def _filled(self, struct: str, fields: tuple[Field, ...], name: str, version: int) -> Any:
        values = {
            field.name: self._value(field, name, version)
            for field in fields
            if field.versions.covers(version) and (field.name in self.fields or field.default is ...)
        }
        return getattr(samples.codec_of(self.table), struct)(**values)

    def _value(self, field: Field, name: str, version: int) -> Any:
        if field.name in self.fields:
            given = self.fields[field.name]
            return given(name) if callable(given) else given
        if isinstance(field.type, Struct):
            found = self._filled(self.table.name + field.type.name, field.type.fields, name, version)
        elif field.name in NAMES:
            found = name
        elif field.name == "timeout_ms":
            found = TIMEOUT_MS
        else:
            found = {"string": "x", "bool": False, "uuid": bytes(16)}.get(
                field.type.name, b"x" if field.type.name in ("bytes", "records") else 0
            )
        return (found,) if field.repeated else found


def _batch(**fields: Any) -> bytes:
    return bytes(build_batch([NewRecord(1_700_000_000_000, None, b"v")], **fields))


def _named(suffix: str) -> Callable[[str], tuple[str, ...]]:
    return lambda name: (name + suffix,)


_BY_TYPE = {"resource_type": 2, "configs": ()}
_ANYTHING = {
    "resource_type_filter": AclResourceType.TOPIC,
    "resource_name_filter": "rule",
    "pattern_type_filter": PatternType.LITERAL,
    "principal_filter": None,
    "host_filter": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}
_RULE = {
    "resource_type": AclResourceType.TOPIC,
    "resource_name": "rule",
    "principal": "User:x",
    "host": "*",
    "operation": Operation.READ,
    "permission_type": Permission.ALLOW,
}
_VOTER = {"voter_id": 77, "listeners": (), "cluster_id": None}
_PRODUCER = {"producer_id": PRODUCER_ID, "producer_epoch": PRODUCER_EPOCH}

CASES = (
    AccessCase(ApiKey.DESCRIBE_TRANSACTIONS, ID),
    AccessCase(ApiKey.PRODUCE, TOPIC, {"acks": -1, "records": _batch()}, 12),
    AccessCase(
        ApiKey.PRODUCE,
        ID,
        {
            "acks": -1,
            "transactional_id": lambda name: name,
            "records": _batch(
                producer_id=PRODUCER_ID, producer_epoch=PRODUCER_EPOCH, base_sequence=0, transactional=True
            ),
        },
        12,
    ),
    AccessCase(ApiKey.FETCH, TOPIC, {"forgotten_topics_data": ()}, 12),
    AccessCase(ApiKey.LIST_OFFSETS, TOPIC, {"timestamp": -1}),
    AccessCase(ApiKey.METADATA, TOPIC, {"allow_auto_topic_creation": True}),
    AccessCase(ApiKey.METADATA, None, {"topics": None}, lists_topics=True),
    AccessCase(ApiKey.OFFSET_COMMIT, GROUP, {"member_id": ""}, 9),
    AccessCase(ApiKey.OFFSET_FETCH, GROUP, {}, 9),
    AccessCase(ApiKey.OFFSET_FETCH, GROUP, {"topics": None}, 9, lists_topics=True),
    AccessCase(ApiKey.FIND_COORDINATOR, GROUP, {"key_type": 0}),
    AccessCase(ApiKey.FIND_COORDINATOR, ID, {"key_type": 1}),
    AccessCase(ApiKey.JOIN_GROUP, GROUP, {"session_timeout_ms": 10_000, "member_id": ""}),
    AccessCase(ApiKey.HEARTBEAT, GROUP),
    AccessCase(ApiKey.LEAVE_GROUP, GROUP),
    AccessCase(ApiKey.SYNC_GROUP, GROUP, {"protocol_type": "consumer", "protocol_name": "x"}),
    AccessCase(ApiKey.DESCRIBE_GROUPS, GROUP),
    AccessCase(ApiKey.LIST_GROUPS, None, {"states_filter": (), "types_filter": ()}),
    AccessCase(
        ApiKey.CREATE_TOPICS,
        TOPIC,
        {
            "num_partitions": 1,
            "replication_factor": 1,
            "assignments": (),
            "configs": (),
            "name": lambda name: f"{name}-new",
        },
    ),
    AccessCase(ApiKey.DELETE_RECORDS, TOPIC, {"offset": -1}),
    AccessCase(ApiKey.INIT_PRODUCER_ID, ID, {"transaction_timeout_ms": 60_000}),
    AccessCase(ApiKey.INIT_PRODUCER_ID, CLUSTER, {"transactional_id": None}),
    AccessCase(ApiKey.OFFSET_FOR_LEADER_EPOCH, TOPIC),
    AccessCase(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ID,
        {"v3_and_below_transactional_id": lambda name: name, "v3_and_below_producer_id": PRODUCER_ID},
        3,
    ),
    AccessCase(ApiKey.ADD_PARTITIONS_TO_TXN, CLUSTER, _PRODUCER),
    AccessCase(ApiKey.ADD_OFFSETS_TO_TXN, ID, _PRODUCER),
    AccessCase(ApiKey.TXN_OFFSET_COMMIT, ID, _PRODUCER),
    AccessCase(ApiKey.END_TXN, ID, _PRODUCER),
    AccessCase(ApiKey.WRITE_TXN_MARKERS, CLUSTER, _PRODUCER),
    AccessCase(ApiKey.DESCRIBE_ACLS, CLUSTER, _ANYTHING),
    AccessCase(ApiKey.CREATE_ACLS, CLUSTER, _RULE),
    AccessCase(ApiKey.DELETE_ACLS, CLUSTER, _ANYTHING),
    *(
        AccessCase(key, error, {"resource_type": kind, "configs": (), "configuration_keys": None, **named})
        for key in (ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
        for kind, error, named in ((2, TOPIC, {}), (4, CLUSTER, {"resource_name": "1"}), (32, GROUP, {}))
    ),
    AccessCase(ApiKey.DESCRIBE_LOG_DIRS, CLUSTER),
    AccessCase(ApiKey.CREATE_PARTITIONS, TOPIC, {"count": 3, "assignments": None}),
    AccessCase(ApiKey.CREATE_DELEGATION_TOKEN, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    AccessCase(ApiKey.DESCRIBE_DELEGATION_TOKEN, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    AccessCase(ApiKey.ELECT_LEADERS, CLUSTER),
    AccessCase(ApiKey.ALTER_PARTITION_REASSIGNMENTS, CLUSTER, {"replicas": None}),
    AccessCase(ApiKey.LIST_PARTITION_REASSIGNMENTS, CLUSTER),
    AccessCase(ApiKey.OFFSET_DELETE, GROUP),
    AccessCase(ApiKey.DESCRIBE_CLIENT_QUOTAS, CLUSTER),
    AccessCase(ApiKey.ALTER_CLIENT_QUOTAS, CLUSTER),
    AccessCase(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, CLUSTER),
    AccessCase(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        CLUSTER,
        {"deletions": (), "mechanism": 1, "iterations": 4096, "salt": bytes(16), "salted_password": bytes(32)},
    ),
    AccessCase(ApiKey.DESCRIBE_QUORUM, CLUSTER, {"topic_name": "__cluster_metadata"}),
    AccessCase(ApiKey.UPDATE_FEATURES, CLUSTER, {"feature_updates": ()}),
    AccessCase(ApiKey.DESCRIBE_PRODUCERS, TOPIC),
    AccessCase(ApiKey.UNREGISTER_BROKER, CLUSTER, {"broker_id": 77}),
    AccessCase(ApiKey.LIST_TRANSACTIONS, None, {"state_filters": (), "producer_id_filters": ()}),
    AccessCase(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        GROUP,
        {
            "group_id": lambda name: name + CONSUMER_GROUP,
            "rebalance_timeout_ms": 10_000,
            "subscribed_topic_names": _named(""),
            "topic_partitions": (),
        },
    ),
    AccessCase(ApiKey.CONSUMER_GROUP_DESCRIBE, GROUP, {"group_ids": _named(CONSUMER_GROUP)}),
    AccessCase(ApiKey.LIST_CONFIG_RESOURCES, CLUSTER, {"resource_types": ()}),
    AccessCase(ApiKey.DESCRIBE_TOPIC_PARTITIONS, TOPIC),
    AccessCase(ApiKey.DESCRIBE_TOPIC_PARTITIONS, None, {"topics": ()}, lists_topics=True),
    AccessCase(ApiKey.ADD_RAFT_VOTER, CLUSTER, _VOTER),
    AccessCase(ApiKey.REMOVE_RAFT_VOTER, CLUSTER, _VOTER),
    AccessCase(ApiKey.BEGIN_BATCH_WRITER, ID),
    AccessCase(ApiKey.COMMIT_BATCH, ID, {"writers": ()}),
    AccessCase(ApiKey.ABORT_BATCH, ID),
    AccessCase(ApiKey.DESCRIBE_BATCHES, ID),
    AccessCase(ApiKey.SCAN_MANIFEST, TOPIC, {"lease_ms": 10_000}),
    AccessCase(ApiKey.CREATE_INVITATION, CLUSTER, {"lifetime_ms": 10_000}),
    AccessCase(ApiKey.DESCRIBE_CONNECTIONS, CLUSTER, {"connections_max": 10}),
    AccessCase(ApiKey.LIST_METADATA_CHANGES, CLUSTER),
    # They delete what the others are about.
    AccessCase(ApiKey.DELETE_GROUPS, GROUP),
    AccessCase(ApiKey.DELETE_TOPICS, TOPIC, {"name": lambda name: name}),
)

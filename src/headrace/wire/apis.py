"""Every API by key: its name, the versions of its codec, and the codec itself, imported on first use.

Another module decides which versions a broker advertises: a codec may support versions that are not served.
"""

from enum import IntEnum
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

from headrace.wire.codec import Encoding
from headrace.wire.primitives.layouts import Buffer

NEVER = 32_767
"""First flexible version of an API that has none."""


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81

    # Headrace's own APIs, far from Kafka's, whose keys are below 100.
    BEGIN_BATCH_WRITER = 32_000
    COMMIT_BATCH = 32_001
    ABORT_BATCH = 32_002
    DESCRIBE_BATCHES = 32_003
    SCAN_MANIFEST = 32_010
    SCAN_RELEASE = 32_011
    SYNC_PARTITIONS = 32_023

    # Between the nodes of a cluster.
    AUTHENTICATE_PEER = 32_020
    RAFT_MESSAGES = 32_021
    REPORT_BROKER_GONE = 32_025
    READ_INDEX = 32_027
    FORWARD_REQUEST = 32_022
    JOIN_CLUSTER = 32_024

    # About a broker, for the manager.
    DESCRIBE_CONNECTIONS = 32_040
    LIST_METADATA_CHANGES = 32_041

    CREATE_INVITATION = 32_026
    REPORT_LOG_ENDS = 32_035
    REPORT_REPLICA_FAULTS = 32_036
    CHECK_RECORDS = 32_037


PRIVATE_FROM = 32_000
"""Keys from here on are Headrace's own."""


class Api(NamedTuple):
    module: str
    version_max: int
    flexible_from: int
    version_min: int = 0


APIS: dict[int, Api] = {
    ApiKey.PRODUCE: Api("produce", 13, 9),
    ApiKey.FETCH: Api("fetch", 18, 12, version_min=4),
    ApiKey.LIST_OFFSETS: Api("list_offsets", 11, 6),
    ApiKey.METADATA: Api("metadata", 13, 9),
    ApiKey.OFFSET_COMMIT: Api("offset_commit", 10, 8),
    ApiKey.OFFSET_FETCH: Api("offset_fetch", 10, 6),
    ApiKey.FIND_COORDINATOR: Api("find_coordinator", 6, 3),
    ApiKey.JOIN_GROUP: Api("join_group", 9, 6),
    ApiKey.HEARTBEAT: Api("heartbeat", 4, 4),
    ApiKey.LEAVE_GROUP: Api("leave_group", 5, 4),
    ApiKey.SYNC_GROUP: Api("sync_group", 5, 4),
    ApiKey.DESCRIBE_GROUPS: Api("describe_groups", 6, 5),
    ApiKey.LIST_GROUPS: Api("list_groups", 5, 3),
    ApiKey.SASL_HANDSHAKE: Api("sasl_handshake", 1, NEVER),
    ApiKey.API_VERSIONS: Api("api_versions", 4, 3),
    ApiKey.CREATE_TOPICS: Api("create_topics", 7, 5),
    ApiKey.DELETE_TOPICS: Api("delete_topics", 6, 4),
    ApiKey.DELETE_RECORDS: Api("delete_records", 2, 2),
    ApiKey.INIT_PRODUCER_ID: Api("init_producer_id", 6, 2),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api("offset_for_leader_epoch", 4, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: Api("add_partitions_to_txn", 5, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: Api("add_offsets_to_txn", 4, 3),
    ApiKey.END_TXN: Api("end_txn", 5, 3),
    ApiKey.WRITE_TXN_MARKERS: Api("write_txn_markers", 2, 1),
    ApiKey.TXN_OFFSET_COMMIT: Api("txn_offset_commit", 5, 3),
    ApiKey.DESCRIBE_ACLS: Api("describe_acls", 3, 2),
    ApiKey.CREATE_ACLS: Api("create_acls", 3, 2),
    ApiKey.DELETE_ACLS: Api("delete_acls", 3, 2),
    ApiKey.DESCRIBE_CONFIGS: Api("describe_configs", 4, 4),
    ApiKey.ALTER_CONFIGS: Api("alter_configs", 2, 2),
    ApiKey.DESCRIBE_LOG_DIRS: Api("describe_log_dirs", 4, 2),
    ApiKey.SASL_AUTHENTICATE: Api("sasl_authenticate", 2, 2),
    ApiKey.CREATE_PARTITIONS: Api("create_partitions", 3, 2),
    ApiKey.CREATE_DELEGATION_TOKEN: Api("create_delegation_token", 3, 2, version_min=1),
    ApiKey.RENEW_DELEGATION_TOKEN: Api("renew_delegation_token", 2, 2, version_min=1),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Api("expire_delegation_token", 2, 2, version_min=1),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Api("describe_delegation_token", 3, 2, version_min=1),
    ApiKey.DELETE_GROUPS: Api("delete_groups", 2, 2),
    ApiKey.ELECT_LEADERS: Api("elect_leaders", 2, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api("incremental_alter_configs", 1, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Api("alter_partition_reassignments", 1, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Api("list_partition_reassignments", 0, 0),
    ApiKey.OFFSET_DELETE: Api("offset_delete", 0, NEVER),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Api("describe_client_quotas", 1, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: Api("alter_client_quotas", 1, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Api("describe_user_scram_credentials", 0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Api("alter_user_scram_credentials", 0, 0),
    ApiKey.DESCRIBE_QUORUM: Api("describe_quorum", 2, 0),
    ApiKey.ALTER_PARTITION: Api("alter_partition", 3, 0, version_min=2),
    ApiKey.UPDATE_FEATURES: Api("update_features", 2, 0),
    ApiKey.DESCRIBE_CLUSTER: Api("describe_cluster", 2, 0),
    ApiKey.DESCRIBE_PRODUCERS: Api("describe_producers", 0, 0),
    ApiKey.BROKER_REGISTRATION: Api("broker_registration", 4, 0),
    ApiKey.BROKER_HEARTBEAT: Api("broker_heartbeat", 1, 0),
    ApiKey.UNREGISTER_BROKER: Api("unregister_broker", 0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: Api("describe_transactions", 0, 0),
    ApiKey.LIST_TRANSACTIONS: Api("list_transactions", 2, 0),
    ApiKey.ALLOCATE_PRODUCER_IDS: Api("allocate_producer_ids", 0, 0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Api("consumer_group_heartbeat", 1, 0),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Api("consumer_group_describe", 1, 0),
    ApiKey.LIST_CONFIG_RESOURCES: Api("list_config_resources", 1, 0),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Api("describe_topic_partitions", 0, 0),
    ApiKey.ADD_RAFT_VOTER: Api("add_raft_voter", 1, 0),
    ApiKey.REMOVE_RAFT_VOTER: Api("remove_raft_voter", 0, 0),
    ApiKey.BEGIN_BATCH_WRITER: Api("begin_batch_writer", 0, 0),
    ApiKey.COMMIT_BATCH: Api("commit_batch", 1, 0),
    ApiKey.ABORT_BATCH: Api("abort_batch", 0, 0),
    ApiKey.DESCRIBE_BATCHES: Api("describe_batches", 0, 0),
    ApiKey.SCAN_MANIFEST: Api("scan_manifest", 0, 0),
    ApiKey.SCAN_RELEASE: Api("scan_release", 0, 0),
    ApiKey.SYNC_PARTITIONS: Api("sync_partitions", 0, 0),
    ApiKey.AUTHENTICATE_PEER: Api("authenticate_peer", 0, 0),
    ApiKey.RAFT_MESSAGES: Api("raft_messages", 0, 0),
    ApiKey.REPORT_BROKER_GONE: Api("report_broker_gone", 0, 0),
    ApiKey.READ_INDEX: Api("read_index", 0, 0),
    ApiKey.FORWARD_REQUEST: Api("forward_request", 0, 0),
    ApiKey.JOIN_CLUSTER: Api("join_cluster", 0, 0),
    ApiKey.CREATE_INVITATION: Api("create_invitation", 0, 0),
    ApiKey.DESCRIBE_CONNECTIONS: Api("describe_connections", 0, 0),
    ApiKey.LIST_METADATA_CHANGES: Api("list_metadata_changes", 0, 0),
    ApiKey.REPORT_LOG_ENDS: Api("report_log_ends", 0, 0),
    ApiKey.REPORT_REPLICA_FAULTS: Api("report_replica_faults", 0, 0),
    ApiKey.CHECK_RECORDS: Api("check_records", 0, 0),
}


class Codec(Protocol):
    """Interface of every module in `wire.messages`. The messages are the module's own dataclasses."""

    API_KEY: int
    MIN_VERSION: int
    MAX_VERSION: int
    FLEXIBLE_FROM: int

    def decode_request(self, buffer: Buffer, position: int, end: int, version: int) -> Any: ...
    def encode_request(self, message: Any, version: int) -> bytes: ...
    def decode_response(self, buffer: Buffer, position: int, end: int, version: int) -> Any: ...
    def encode_response(self, message: Any, version: int) -> bytes: ...
    def begin_response(self, message: Any, version: int) -> bytes | Encoding: ...


def codec(api_key: int) -> Codec:
    """Return the codec module of an API; KeyError if there is none."""
    return cast(Codec, import_module(f"headrace.wire.messages.{APIS[api_key].module}"))


def is_flexible(api_key: int, version: int) -> bool:
    """Return whether this version of a known API uses compact encodings and tagged fields; an unknown API does not."""
    api = APIS.get(api_key)
    return api is not None and version >= api.flexible_from

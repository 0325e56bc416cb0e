"""The APIs that this broker serves, their versions, and the modules of their handlers.

Versions are a promise of semantics: only what works is listed. A handler module is imported at its first request;
only ApiVersions, Metadata, Produce and Fetch are loaded at start.
"""

from typing import NamedTuple

from headrace.wire.apis import ApiKey


class ServedApi(NamedTuple):
    key: ApiKey
    min_version: int
    max_version: int
    module: str
    """Module under headrace.broker.api with `handle(request, ctx)`; the codec has the same name under wire.messages."""
    on_controller: bool = False
    """True if only the active controller can answer; other brokers forward the request to it."""


SERVED = (
    ServedApi(ApiKey.PRODUCE, 0, 13, "produce"),
    ServedApi(ApiKey.FETCH, 4, 18, "fetch"),
    ServedApi(ApiKey.LIST_OFFSETS, 0, 11, "list_offsets"),
    ServedApi(ApiKey.METADATA, 0, 13, "metadata"),
    ServedApi(ApiKey.OFFSET_COMMIT, 0, 10, "offset_commit"),
    ServedApi(ApiKey.OFFSET_FETCH, 0, 10, "offset_fetch"),
    ServedApi(ApiKey.FIND_COORDINATOR, 0, 6, "find_coordinator"),
    ServedApi(ApiKey.JOIN_GROUP, 0, 9, "join_group"),
    ServedApi(ApiKey.HEARTBEAT, 0, 4, "heartbeat"),
    ServedApi(ApiKey.LEAVE_GROUP, 0, 5, "leave_group"),
    ServedApi(ApiKey.SYNC_GROUP, 0, 5, "sync_group"),
    ServedApi(ApiKey.DESCRIBE_GROUPS, 0, 6, "describe_groups"),
    ServedApi(ApiKey.LIST_GROUPS, 0, 5, "list_groups"),
    ServedApi(ApiKey.SASL_HANDSHAKE, 1, 1, "sasl_handshake"),
    ServedApi(ApiKey.API_VERSIONS, 0, 4, "api_versions"),
    ServedApi(ApiKey.CREATE_TOPICS, 0, 7, "create_topics", on_controller=True),
    ServedApi(ApiKey.DELETE_TOPICS, 0, 6, "delete_topics", on_controller=True),
    ServedApi(ApiKey.DELETE_RECORDS, 0, 2, "delete_records"),
    ServedApi(ApiKey.INIT_PRODUCER_ID, 0, 5, "init_producer_id"),
    ServedApi(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4, "offset_for_leader_epoch"),
    ServedApi(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, "add_partitions_to_txn"),
    ServedApi(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, "add_offsets_to_txn"),
    ServedApi(ApiKey.END_TXN, 0, 5, "end_txn"),
    ServedApi(ApiKey.TXN_OFFSET_COMMIT, 0, 5, "txn_offset_commit"),
    ServedApi(ApiKey.WRITE_TXN_MARKERS, 0, 2, "write_txn_markers"),
    ServedApi(ApiKey.DESCRIBE_ACLS, 0, 3, "describe_acls"),
    ServedApi(ApiKey.CREATE_ACLS, 0, 3, "create_acls", on_controller=True),
    ServedApi(ApiKey.DELETE_ACLS, 0, 3, "delete_acls", on_controller=True),
    ServedApi(ApiKey.DESCRIBE_CONFIGS, 0, 4, "describe_configs"),
    ServedApi(ApiKey.ALTER_CONFIGS, 0, 2, "alter_configs", on_controller=True),
    ServedApi(ApiKey.DESCRIBE_LOG_DIRS, 0, 4, "describe_log_dirs"),
    ServedApi(ApiKey.SASL_AUTHENTICATE, 0, 2, "sasl_authenticate"),
    ServedApi(ApiKey.CREATE_PARTITIONS, 0, 3, "create_partitions", on_controller=True),
    ServedApi(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, "create_delegation_token", on_controller=True),
    ServedApi(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, "renew_delegation_token", on_controller=True),
    ServedApi(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, "expire_delegation_token", on_controller=True),
    ServedApi(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, "describe_delegation_token"),
    ServedApi(ApiKey.DELETE_GROUPS, 0, 2, "delete_groups"),
    ServedApi(ApiKey.ELECT_LEADERS, 0, 2, "elect_leaders", on_controller=True),
    ServedApi(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, "incremental_alter_configs", on_controller=True),
    ServedApi(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, "alter_partition_reassignments", on_controller=True),
    ServedApi(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, "list_partition_reassignments", on_controller=True),
    ServedApi(ApiKey.OFFSET_DELETE, 0, 0, "offset_delete"),
    ServedApi(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, "describe_client_quotas"),
    ServedApi(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, "alter_client_quotas", on_controller=True),
    ServedApi(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, "describe_user_scram_credentials"),
    ServedApi(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, "alter_user_scram_credentials", on_controller=True),
    ServedApi(ApiKey.DESCRIBE_QUORUM, 0, 2, "describe_quorum", on_controller=True),
    ServedApi(ApiKey.UPDATE_FEATURES, 0, 2, "update_features", on_controller=True),
    ServedApi(ApiKey.DESCRIBE_CLUSTER, 0, 2, "describe_cluster"),
    ServedApi(ApiKey.DESCRIBE_PRODUCERS, 0, 0, "describe_producers"),
    ServedApi(ApiKey.UNREGISTER_BROKER, 0, 0, "unregister_broker", on_controller=True),
    ServedApi(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, "describe_transactions"),
    ServedApi(ApiKey.LIST_TRANSACTIONS, 0, 2, "list_transactions"),
    ServedApi(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, "consumer_group_heartbeat"),
    ServedApi(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, "consumer_group_describe"),
    ServedApi(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, "list_config_resources"),
    ServedApi(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, "describe_topic_partitions"),
    ServedApi(ApiKey.ADD_RAFT_VOTER, 0, 1, "add_raft_voter", on_controller=True),
    ServedApi(ApiKey.REMOVE_RAFT_VOTER, 0, 0, "remove_raft_voter", on_controller=True),
    ServedApi(ApiKey.BEGIN_BATCH_WRITER, 0, 0, "begin_batch_writer"),
    ServedApi(ApiKey.COMMIT_BATCH, 0, 1, "commit_batch"),
    ServedApi(ApiKey.ABORT_BATCH, 0, 0, "abort_batch"),
    ServedApi(ApiKey.DESCRIBE_BATCHES, 0, 0, "describe_batches"),
    ServedApi(ApiKey.SCAN_MANIFEST, 0, 0, "scan_manifest"),
    ServedApi(ApiKey.SCAN_RELEASE, 0, 0, "scan_release"),
    ServedApi(ApiKey.CREATE_INVITATION, 0, 0, "create_invitation"),
    ServedApi(ApiKey.DESCRIBE_CONNECTIONS, 0, 0, "describe_connections"),
    ServedApi(ApiKey.LIST_METADATA_CHANGES, 0, 0, "list_metadata_changes"),
)

INTERNAL = (
    ServedApi(ApiKey.AUTHENTICATE_PEER, 0, 0, "authenticate_peer"),
    ServedApi(ApiKey.ALTER_PARTITION, 3, 3, "alter_partition"),
    ServedApi(ApiKey.BROKER_REGISTRATION, 4, 4, "broker_registration"),
    ServedApi(ApiKey.BROKER_HEARTBEAT, 1, 1, "broker_heartbeat"),
    ServedApi(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, "allocate_producer_ids"),
    ServedApi(ApiKey.RAFT_MESSAGES, 0, 0, "raft_messages"),
    ServedApi(ApiKey.FORWARD_REQUEST, 0, 0, "forward_request"),
    ServedApi(ApiKey.JOIN_CLUSTER, 0, 0, "join_cluster"),
    ServedApi(ApiKey.SYNC_PARTITIONS, 0, 0, "sync_partitions"),
    ServedApi(ApiKey.REPORT_BROKER_GONE, 0, 0, "report_broker_gone"),
    ServedApi(ApiKey.REPORT_LOG_ENDS, 0, 0, "report_log_ends"),
    ServedApi(ApiKey.REPORT_REPLICA_FAULTS, 0, 0, "report_replica_faults"),
    ServedApi(ApiKey.CHECK_RECORDS, 0, 0, "check_records"),
    ServedApi(ApiKey.READ_INDEX, 0, 0, "read_index"),
)
"""APIs between the nodes of a cluster: served on the CONTROLLER listener alone, and not listed by ApiVersions."""

FOLLOWERS_FETCH = ServedApi(ApiKey.FETCH, 17, 17, "replica_fetch")
"""Fetch as followers send it on the CONTROLLER listener, in the one version that brokers use among themselves."""

BEFORE_AUTHENTICATION = frozenset({ApiKey.AUTHENTICATE_PEER, ApiKey.JOIN_CLUSTER})
"""APIs that a connection at the CONTROLLER listener may use before it has authenticated."""

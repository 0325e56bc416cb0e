"""The operations on resources that each request needs, as docs/reference/authorization.md lists them.

The handlers check; this table is for readers. A test sends every request, and compares what its handler asks with what
stands here.
"""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey


class AccessCheck(NamedTuple):
    operation: Operation
    resource_type: AclResourceType
    error: ErrorCode | None
    """The error of a client that may not; None if the response leaves out what the client may not see."""
    note: str = ""
    is_alternative: bool = False
    """True if another operation is enough."""


_TOPIC = AclResourceType.TOPIC
_GROUP = AclResourceType.GROUP
_CLUSTER = AclResourceType.CLUSTER
_ID = AclResourceType.TRANSACTIONAL_ID
_ERRORS = {
    _TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    _GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    _CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    _ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def _needs(operation: Operation, resource_type: AclResourceType, note: str = "") -> AccessCheck:
    return AccessCheck(operation, resource_type, _ERRORS[resource_type], note)


def _either(operation: Operation, resource_type: AclResourceType, error: ErrorCode | None, note: str) -> AccessCheck:
    return AccessCheck(operation, resource_type, error, note, is_alternative=True)


def _shows(resource_type: AclResourceType, note: str) -> AccessCheck:
    return AccessCheck(Operation.DESCRIBE, resource_type, None, note)


_READS_GROUP = _needs(Operation.READ, _GROUP)
_DESCRIBES_GROUP = _needs(Operation.DESCRIBE, _GROUP)
_READS_TOPIC = _needs(Operation.READ, _TOPIC)
_DESCRIBES_TOPIC = _needs(Operation.DESCRIBE, _TOPIC)
_DESCRIBES_CLUSTER = _needs(Operation.DESCRIBE, _CLUSTER)
_ALTERS_CLUSTER = _needs(Operation.ALTER, _CLUSTER)
_WRITES_ID = _needs(Operation.WRITE, _ID)
_CREATES_TOKENS = AccessCheck(
    Operation.CREATE_TOKENS,
    AclResourceType.USER,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    "a token of another user",
)
_OTHERS_TOKENS = "tokens of others: Describe on the token, or DescribeTokens on its owner"
_CREATES = "Create on the cluster or on the topic"
_IDEMPOTENT = "an idempotent producer: IdempotentWrite, or Write on any topic (KIP-679)"


def _config_checks(operation: Operation) -> tuple[AccessCheck, ...]:
    return (
        _needs(operation, _TOPIC, "configs of a topic"),
        _needs(operation, _GROUP, "configs of a group"),
        _needs(operation, _CLUSTER, "configs of a broker and of everything else"),
    )


CHECKS: Mapping[ApiKey, tuple[AccessCheck, ...]] = {
    ApiKey.PRODUCE: (
        _needs(Operation.WRITE, _TOPIC),
        _needs(Operation.WRITE, _ID, "batches of a transaction"),
    ),
    ApiKey.FETCH: (_needs(Operation.READ, _TOPIC, "also checked again while the fetch waits"),),
    ApiKey.LIST_OFFSETS: (_DESCRIBES_TOPIC,),
    ApiKey.METADATA: (
        _needs(Operation.DESCRIBE, _TOPIC, "a list of all topics leaves out the others"),
        _either(Operation.CREATE, _CLUSTER, _ERRORS[_TOPIC], f"a missing topic is to be created: {_CREATES}"),
        _either(Operation.CREATE, _TOPIC, _ERRORS[_TOPIC], f"a missing topic is to be created: {_CREATES}"),
    ),
    ApiKey.OFFSET_COMMIT: (_READS_GROUP, _READS_TOPIC),
    ApiKey.OFFSET_FETCH: (
        _DESCRIBES_GROUP,
        _needs(Operation.DESCRIBE, _TOPIC, "a list of all topics leaves out the others"),
    ),
    ApiKey.FIND_COORDINATOR: (
        _needs(Operation.DESCRIBE, _GROUP, "the coordinator of a group"),
        _needs(Operation.DESCRIBE, _ID, "the coordinator of a transactional id"),
    ),
    ApiKey.JOIN_GROUP: (_READS_GROUP,),
    ApiKey.HEARTBEAT: (_READS_GROUP,),
    ApiKey.LEAVE_GROUP: (_READS_GROUP,),
    ApiKey.SYNC_GROUP: (_READS_GROUP,),
    ApiKey.DESCRIBE_GROUPS: (_DESCRIBES_GROUP,),
    ApiKey.LIST_GROUPS: (
        _either(Operation.DESCRIBE, _CLUSTER, None, "lists all groups"),
        _either(Operation.DESCRIBE, _GROUP, None, "lists this group"),
    ),
    ApiKey.SASL_HANDSHAKE: (),
    ApiKey.API_VERSIONS: (),
    ApiKey.CREATE_TOPICS: (
        _either(Operation.CREATE, _CLUSTER, _ERRORS[_TOPIC], _CREATES),
        _either(Operation.CREATE, _TOPIC, _ERRORS[_TOPIC], _CREATES),
        AccessCheck(Operation.DESCRIBE_CONFIGS, _TOPIC, None, "the response has the configs"),
    ),
    ApiKey.DELETE_TOPICS: (
        _either(Operation.DELETE, _TOPIC, _ERRORS[_TOPIC], "a topic that exists"),
        _either(Operation.DESCRIBE, _TOPIC, _ERRORS[_TOPIC], "a topic that does not exist"),
        _either(
            Operation.DELETE, _CLUSTER, _ERRORS[_TOPIC], "instead of both; only a rule for All operations gives it"
        ),
    ),
    ApiKey.DELETE_RECORDS: (_needs(Operation.DELETE, _TOPIC),),
    ApiKey.INIT_PRODUCER_ID: (
        _needs(Operation.WRITE, _ID, "a transactional producer"),
        _either(Operation.IDEMPOTENT_WRITE, _CLUSTER, _ERRORS[_CLUSTER], _IDEMPOTENT),
        _either(Operation.WRITE, _TOPIC, _ERRORS[_CLUSTER], _IDEMPOTENT),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        _either(Operation.DESCRIBE, _TOPIC, _ERRORS[_TOPIC], "or ClusterAction on the cluster"),
        _either(Operation.CLUSTER_ACTION, _CLUSTER, _ERRORS[_TOPIC], "or Describe on the topic"),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        _needs(Operation.WRITE, _ID, "up to version 3"),
        _needs(Operation.WRITE, _TOPIC, "up to version 3"),
        _needs(Operation.CLUSTER_ACTION, _CLUSTER, "from version 4 on, which brokers send"),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (_WRITES_ID, _READS_GROUP),
    ApiKey.END_TXN: (_WRITES_ID,),
    ApiKey.TXN_OFFSET_COMMIT: (_WRITES_ID, _READS_GROUP, _READS_TOPIC),
    ApiKey.WRITE_TXN_MARKERS: (
        _either(Operation.ALTER, _CLUSTER, _ERRORS[_CLUSTER], "Alter or ClusterAction (KIP-1037)"),
        _either(Operation.CLUSTER_ACTION, _CLUSTER, _ERRORS[_CLUSTER], "Alter or ClusterAction (KIP-1037)"),
    ),
    ApiKey.DESCRIBE_ACLS: (_DESCRIBES_CLUSTER,),
    ApiKey.CREATE_ACLS: (_ALTERS_CLUSTER,),
    ApiKey.DELETE_ACLS: (_ALTERS_CLUSTER,),
    ApiKey.DESCRIBE_CONFIGS: _config_checks(Operation.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CONFIGS: _config_checks(Operation.ALTER_CONFIGS),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _config_checks(Operation.ALTER_CONFIGS),
    ApiKey.DESCRIBE_LOG_DIRS: (_DESCRIBES_CLUSTER,),
    ApiKey.SASL_AUTHENTICATE: (),
    ApiKey.CREATE_PARTITIONS: (_needs(Operation.ALTER, _TOPIC),),
    ApiKey.CREATE_DELEGATION_TOKEN: (_CREATES_TOKENS,),
    ApiKey.RENEW_DELEGATION_TOKEN: (),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (
        _either(Operation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, None, _OTHERS_TOKENS),
        _either(Operation.DESCRIBE_TOKENS, AclResourceType.USER, None, _OTHERS_TOKENS),
    ),
    ApiKey.DELETE_GROUPS: (_needs(Operation.DELETE, _GROUP),),
    ApiKey.ELECT_LEADERS: (_ALTERS_CLUSTER,),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (_ALTERS_CLUSTER,),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (_DESCRIBES_CLUSTER,),
    ApiKey.OFFSET_DELETE: (_needs(Operation.DELETE, _GROUP), _READS_TOPIC),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (_needs(Operation.DESCRIBE_CONFIGS, _CLUSTER),),
    ApiKey.ALTER_CLIENT_QUOTAS: (_needs(Operation.ALTER_CONFIGS, _CLUSTER),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (_DESCRIBES_CLUSTER,),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (_ALTERS_CLUSTER,),
    ApiKey.DESCRIBE_QUORUM: (_DESCRIBES_CLUSTER,),
    ApiKey.UPDATE_FEATURES: (_ALTERS_CLUSTER,),
    ApiKey.DESCRIBE_CLUSTER: (),
    ApiKey.DESCRIBE_PRODUCERS: (_READS_TOPIC,),
    ApiKey.UNREGISTER_BROKER: (_ALTERS_CLUSTER,),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        _needs(Operation.DESCRIBE, _ID),
        _shows(_TOPIC, "lists the partitions of this topic"),
    ),
    ApiKey.LIST_TRANSACTIONS: (_shows(_ID, "lists this transactional id"),),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (
        _READS_GROUP,
        _needs(Operation.DESCRIBE, _TOPIC, "topics subscribed by name; a regular expression matches only these"),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (
        _DESCRIBES_GROUP,
        _needs(Operation.DESCRIBE, _TOPIC, "every topic that is assigned to its members"),
    ),
    ApiKey.LIST_CONFIG_RESOURCES: (_needs(Operation.DESCRIBE_CONFIGS, _CLUSTER),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (
        _needs(Operation.DESCRIBE, _TOPIC, "a list of all topics leaves out the others"),
    ),
    ApiKey.ADD_RAFT_VOTER: (_ALTERS_CLUSTER,),
    ApiKey.REMOVE_RAFT_VOTER: (_ALTERS_CLUSTER,),
    ApiKey.BEGIN_BATCH_WRITER: (_needs(Operation.WRITE, _ID, "the owner's id, which begins those of its writers"),),
    ApiKey.COMMIT_BATCH: (
        _needs(Operation.WRITE, _ID, "the owner's id"),
        _needs(Operation.WRITE, _TOPIC, "every topic that the writers have written to"),
    ),
    ApiKey.ABORT_BATCH: (_needs(Operation.WRITE, _ID, "the owner's id"),),
    ApiKey.DESCRIBE_BATCHES: (_needs(Operation.DESCRIBE, _ID, "the owner's id"),),
    ApiKey.SCAN_MANIFEST: (
        _needs(Operation.READ, _TOPIC, "a lease ends when the client loses either"),
        AccessCheck(Operation.CLUSTER_ACTION, _CLUSTER, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ),
    ApiKey.SCAN_RELEASE: (),
    ApiKey.CREATE_INVITATION: (_ALTERS_CLUSTER,),
    ApiKey.DESCRIBE_CONNECTIONS: (_DESCRIBES_CLUSTER,),
    ApiKey.LIST_METADATA_CHANGES: (
        _needs(Operation.DESCRIBE, _CLUSTER, "also checked again while the request waits"),
        _shows(_TOPIC, "lists the changes of this topic"),
    ),
}

WITHOUT_CHECK: Mapping[ApiKey, str] = {
    ApiKey.API_VERSIONS: "a client asks for it before it logs in",
    ApiKey.SASL_HANDSHAKE: "a part of the login",
    ApiKey.SASL_AUTHENTICATE: "a part of the login",
    ApiKey.DESCRIBE_CLUSTER: "brokers and the cluster id, as Metadata gives them to every client too",
    ApiKey.RENEW_DELEGATION_TOKEN: "owner, requester and renewers of a token may renew it",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "owner, requester and renewers of a token may let it expire",
    ApiKey.SCAN_RELEASE: "a client can only end leases of its own principal",
}
"""Requests that every client may send, with the reason."""

"""The admit stage: errors of a request, its topics and its producer that need no look at the log."""

from typing import NamedTuple

from headrace.broker.net.connection import Connection
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.broker.partitions.replica import ACKS_ALL
from headrace.broker.produce.parse import ProduceRequest
from headrace.broker.services import AccessControl
from headrace.core.controller.names import INTERNAL_TOPICS
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.produce import TOPIC_IDS_FROM, TRANSACTIONAL_ID_FROM
from headrace.wire.records.header import (
    ATTRIBUTES,
    HEADER,
    HEADER_SIZE,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TRANSACTIONAL_BIT,
)

_NONE = ErrorCode.NONE


class Writer(NamedTuple):
    """The producer whose transaction the batches of a request belong to."""

    producer_id: int
    epoch: int


def request_error(request: ProduceRequest) -> ErrorCode:
    """Return the error that holds for every partition of the request; NONE if there is none."""
    if request.version < TRANSACTIONAL_ID_FROM:
        return ErrorCode.UNSUPPORTED_VERSION  # message formats before v2 are not stored
    if request.acks not in (ACKS_ALL, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    return _NONE


def topic_error(
    access: AccessControl, connection: Connection, topic: LocalTopic | None, topic_key: bytes, version: int
) -> ErrorCode:
    """Return the error that holds for every partition of the topic; NONE if the client may write to it.

    Access is checked first, so that a client does not find out which other topics exist.
    """
    by_id = version >= TOPIC_IDS_FROM
    if topic is None and by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not access.open_to_all:
        name = topic_key.decode(errors="replace") if topic is None else topic.name
        asked = (connection.principal, connection.peer_host, Operation.WRITE, AclResourceType.TOPIC, name)
        if not access.authorize(*asked):
            access.note_refusal(*asked)
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.name in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION  # only coordinators change their own state
    return _NONE


def may_use_transactional_id(access: AccessControl, connection: Connection, transactional_id: bytes) -> bool:
    if access.open_to_all:
        return True
    name = transactional_id.decode(errors="replace")
    asked = (connection.principal, connection.peer_host, Operation.WRITE, AclResourceType.TRANSACTIONAL_ID, name)
    is_allowed = access.authorize(*asked)
    if not is_allowed:
        access.note_refusal(*asked)
    return is_allowed


def transaction_writer(request: ProduceRequest) -> Writer | ErrorCode | None:
    """Return the one producer of all transactional batches, an error if there are several, None if there is none."""
    writer: Writer | None = None
    for _, record_sets in request.topics:
        for _, start, end in record_sets:
            if is_transactional(request, start, end):
                fields = HEADER.unpack_from(request.frame, start)
                found = Writer(fields[PRODUCER_ID], fields[PRODUCER_EPOCH])
                if writer not in (None, found):
                    return ErrorCode.INVALID_PRODUCER_ID_MAPPING
                writer = found
    return writer


def is_transactional(request: ProduceRequest, start: int, end: int) -> bool:
    """Return whether the record set is a batch of a transaction."""
    if start < 0 or end - start < HEADER_SIZE:
        return False
    fields = HEADER.unpack_from(request.frame, start)
    return fields[PRODUCER_ID] >= 0 and bool(fields[ATTRIBUTES] & TRANSACTIONAL_BIT)

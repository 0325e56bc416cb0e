"""The answer stage: the response to a request whose record sets are staged, and its wait for their commit."""

from msgspec import Struct

from headrace.broker.missed_leaders import MissedLeaders
from headrace.broker.net.connection import Connection, ResponseSlot
from headrace.broker.partitions.replica import Replica
from headrace.broker.produce.parse import ProduceRequest
from headrace.broker.services import MetadataSource
from headrace.wire.produce import CURRENT_LEADER_FROM, PartitionResult, encode_response

Confirmation = tuple[Replica, int]
"""(partition, offset after the last record of the record set)."""

Confirmations = list[Confirmation | None]
"""One for each record set of a request, in order; None for a rejected one. Empty while the request is held."""


class RequestOutcome(Struct):
    """The results of all record sets of one request, in its order."""

    topics: list[tuple[bytes, list[PartitionResult]]] = []
    confirmations: Confirmations = []
    keyless: dict[int, list[int]] = {}
    """Indexes of records without a key, by the number of their record set in the request (KIP-467)."""
    missed: dict[int, tuple[str, int]] = {}
    """Partitions that another broker leads, by the number of their record set in the request."""
    failed: bool = False
    """True if any record set was rejected."""


def answer_request(
    request: ProduceRequest,
    slot: ResponseSlot,
    outcome: RequestOutcome,
    metadata: MetadataSource,
    throttle_time_ms: int,
) -> None:
    """Encode the response, and register it with the partitions whose write or commit it waits for."""
    _, version, correlation_id, _, acks, timeout_ms, _, _ = request
    if acks == 0:
        _finish_unanswered(slot.connection, outcome)
        return
    if outcome.missed and version >= CURRENT_LEADER_FROM:
        missed = MissedLeaders(metadata.image, slot.connection.listener_name)
        found = ((number, missed.find(*partition)) for number, partition in outcome.missed.items())
        leaders = {number: leader for number, leader in found if leader is not None}
        slot.parts, errors_at = encode_response(
            version, correlation_id, outcome.topics, throttle_time_ms, outcome.keyless, leaders, missed.endpoints()
        )
    else:
        slot.parts, errors_at = encode_response(
            version, correlation_id, outcome.topics, throttle_time_ms, outcome.keyless
        )
    slot.waits = 0
    for confirmation, error_at in zip(outcome.confirmations, errors_at, strict=True):
        if confirmation is not None:
            confirmation[0].confirm_later(slot, confirmation[1], acks, error_at, timeout_ms)
    slot.connection.mark_dirty()


def _finish_unanswered(connection: Connection, outcome: RequestOutcome) -> None:
    """Close the connection after a failure with acks=0, which has no response: the client then refreshes metadata."""
    unsent = ResponseSlot(connection, None, 0)
    for confirmation in outcome.confirmations:
        if confirmation is not None:
            confirmation[0].confirm_later(unsent, confirmation[1], 0, 0, 0)
    if outcome.failed:
        connection.closing = True
        connection.mark_dirty()

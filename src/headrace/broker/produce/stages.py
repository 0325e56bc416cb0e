"""The stages of Produce, connected: the entry of every request that does not take the short path."""

from headrace.broker.client_quotas import ClientQuotas
from headrace.broker.metrics import Metrics
from headrace.broker.net.connection import (
    MIXED_VERSIONS,
    NO_RESPONSE_YET,
    NO_VERSION,
    Connection,
    ResponseSlot,
)
from headrace.broker.produce.admit import request_error
from headrace.broker.produce.append import AppendStage
from headrace.broker.produce.parse import parse_request
from headrace.broker.produce.record_hold import RecordHold
from headrace.broker.produce.repeated_requests import RepeatedRequests, remember_shape
from headrace.broker.produce.transaction_hold import TransactionChecks, TransactionHold
from headrace.broker.services import AccessControl, MetadataSource, PartitionLookup, TurnClock
from headrace.broker.timers import Timers
from headrace.model.errors import ErrorCode
from headrace.model.limits import CONNECTION_TOPICS_MAX
from headrace.ports.spawner import Spawner


class ProduceStages:
    def __init__(
        self,
        *,
        partitions: PartitionLookup,
        metadata: MetadataSource,
        transactions: TransactionChecks,
        access: AccessControl,
        quotas: ClientQuotas,
        metrics: Metrics,
        spawner: Spawner,
        timers: Timers,
        turn: TurnClock,
    ) -> None:
        self._append = AppendStage(
            partitions=partitions, metadata=metadata, access=access, quotas=quotas, metrics=metrics, turn=turn
        )
        self.transaction_hold = TransactionHold(
            self._append, partitions=partitions, transactions=transactions, access=access, timers=timers
        )
        self.record_hold = RecordHold(self.transaction_hold, partitions=partitions, spawner=spawner)
        self.handle_repeat = RepeatedRequests(metrics, turn, quotas).handle
        """HOT. The short path; an attribute, which saves a call per request."""

    def handle(
        self, connection: Connection, frame: memoryview, position: int, end: int, version: int, correlation_id: int
    ) -> None:
        """Parse the request in `frame[position:end]`, give its response a place, and start it through the stages."""
        request = parse_request(frame, position, end, version, correlation_id)
        if version != connection.produce_version:
            connection.produce_version = version if connection.produce_version == NO_VERSION else MIXED_VERSIONS
        if request.acks:
            slot = ResponseSlot(connection, None, NO_RESPONSE_YET)
            connection.responses.append(slot)
        else:
            slot = ResponseSlot(connection, None, 0)
        connection.produced_topics = tuple([topic for topic, _ in request.topics[:CONNECTION_TOPICS_MAX]])
        error = request_error(request)
        if error is ErrorCode.NONE:
            confirmations = self.record_hold.accept(request, slot)
        else:
            confirmations = self._append.accept(request, slot, error)
        if len(confirmations) == 1 == len(request.topics):
            confirmation = confirmations[0]
            if confirmation is not None:
                remember_shape(connection, request, confirmation[0])

"""The append stage: the record sets of a request go to their partitions, in the order of the request."""

from collections.abc import Mapping
from types import MappingProxyType

from headrace.broker.metrics import PRODUCE_KEY, Metrics
from headrace.broker.net.connection import Answer
from headrace.broker.partitions.append_result import NO_APPEND_TIME, AppendedBatch, RejectedBatch
from headrace.broker.partitions.leader import LedPartition
from headrace.broker.produce.admit import topic_error
from headrace.broker.produce.answer import Confirmations, RequestOutcome, answer_request
from headrace.broker.produce.parse import ProduceRequest
from headrace.broker.services import AccessControl, PartitionLookup, TurnClock
from headrace.model.errors import ErrorCode
from headrace.wire.produce import TOPIC_IDS_FROM, PartitionAnswer
from headrace.wire.records.validation import KEYLESS_RECORDS_MAX

_NONE = ErrorCode.NONE

PartitionErrors = Mapping[tuple[bytes, int], ErrorCode]
"""Errors of single partitions, by the topic as the request names it and the partition."""
NO_PARTITION_ERRORS: PartitionErrors = MappingProxyType({})


class AppendStage:
    def __init__(
        self, *, partitions: PartitionLookup, access: AccessControl, metrics: Metrics, turn: TurnClock
    ) -> None:
        self._partitions = partitions
        self._access = access
        self._metrics = metrics
        self._turn = turn

    def accept(
        self,
        request: ProduceRequest,
        answer: Answer,
        error: ErrorCode = _NONE,
        partition_errors: PartitionErrors = NO_PARTITION_ERRORS,
    ) -> Confirmations:
        """Append the record sets without an error, and answer the request.

        `error` rejects all of them, `partition_errors` those of some partitions.
        """
        version, partitions, partition_of = request.version, self._partitions, self._partitions.partition_of
        principal = answer.connection.principal
        find_topic = partitions.by_id.get if version >= TOPIC_IDS_FROM else partitions.by_name.get
        outcome = RequestOutcome()
        for topic_key, record_sets in request.topics:
            topic = find_topic(topic_key)
            common_error = error or topic_error(self._access, principal, topic, version)
            results: list[PartitionAnswer] = []
            for index, start, end in record_sets:
                found = common_error or partition_errors.get((topic_key, index)) or partition_of(topic, index)
                if isinstance(found, LedPartition):
                    results.append(self._append(request, found, start, end, outcome))
                else:
                    results.append(self._reject(RejectedBatch(found), index, outcome))
            outcome.topics.append((topic_key, results))
        self._metrics.request_errors[PRODUCE_KEY] += outcome.failed
        answer_request(request, answer, outcome)
        return outcome.confirmations

    def _append(
        self, request: ProduceRequest, partition: LedPartition, start: int, end: int, outcome: RequestOutcome
    ) -> PartitionAnswer:
        result = partition.append(
            request.frame,
            start,
            end,
            request.version,
            request.acks,
            self._turn.turn_wall_ms,
            request.transactional_id is not None,
            request.prepared,
        )
        if not isinstance(result, AppendedBatch):
            return self._reject(result, partition.index, outcome)
        outcome.confirmations.append((partition, result.end_offset))
        return partition.index, 0, result.base_offset, result.append_time, partition.log.start_offset

    def _reject(self, rejected: RejectedBatch, index: int, outcome: RequestOutcome) -> PartitionAnswer:
        error = rejected.error
        self._metrics.produce_errors[error] += 1
        if rejected.keyless and sum(map(len, outcome.keyless.values())) < KEYLESS_RECORDS_MAX:
            outcome.keyless[len(outcome.confirmations)] = rejected.keyless
        outcome.confirmations.append(None)
        outcome.failed = True
        return index, error, -1, NO_APPEND_TIME, -1

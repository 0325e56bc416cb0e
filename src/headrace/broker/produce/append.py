"""The append stage: the record sets of a request go to their partitions, in the order of the request."""

from collections.abc import Mapping
from types import MappingProxyType

from headrace.broker.client_quotas import ClientQuotas
from headrace.broker.metrics import PRODUCE_KEY, Metrics
from headrace.broker.missed_leaders import MISSED
from headrace.broker.net.connection import ResponseSlot
from headrace.broker.partitions.append_result import NO_APPEND_TIME, RejectedBatch
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.broker.partitions.produced_batch import append_produced
from headrace.broker.produce.admit import topic_error
from headrace.broker.produce.answer import Confirmations, RequestOutcome, answer_request
from headrace.broker.produce.parse import ProduceRequest
from headrace.broker.services import AccessControl, MetadataSource, PartitionLookup, TurnClock
from headrace.model.errors import ErrorCode
from headrace.wire.produce import TOPIC_IDS_FROM, PartitionResult, PartitionSpan
from headrace.wire.records.validation import KEYLESS_RECORDS_MAX

_NONE = ErrorCode.NONE

PartitionErrors = Mapping[tuple[bytes, int], ErrorCode]
"""Errors of single partitions, by the topic as the request names it and the partition."""
NO_PARTITION_ERRORS: PartitionErrors = MappingProxyType({})


class AppendStage:
    def __init__(
        self,
        *,
        partitions: PartitionLookup,
        metadata: MetadataSource,
        access: AccessControl,
        quotas: ClientQuotas,
        metrics: Metrics,
        turn: TurnClock,
    ) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._access = access
        self._quotas = quotas
        self._metrics = metrics
        self._turn = turn

    def accept(
        self,
        request: ProduceRequest,
        slot: ResponseSlot,
        error: ErrorCode = _NONE,
        partition_errors: PartitionErrors = NO_PARTITION_ERRORS,
    ) -> Confirmations:
        """Append the record sets without an error, and answer the request.

        `error` rejects all of them, `partition_errors` those of some partitions.
        """
        outcome, version = RequestOutcome(), request.version
        find_topic = self._partitions.by_id.get if version >= TOPIC_IDS_FROM else self._partitions.by_name.get
        for topic_key, record_sets in request.topics:
            topic = find_topic(topic_key)
            topic_rejection = error or topic_error(self._access, slot.connection, topic, topic_key, version)
            if topic is None or topic_rejection:
                rejected = RejectedBatch(topic_rejection)
                results = [self._reject(rejected, index, outcome) for index, _start, _end in record_sets]
            else:
                results = self._append_sets(request, topic, topic_key, record_sets, partition_errors, outcome)
            outcome.topics.append((topic_key, results))
        self._metrics.request_errors[PRODUCE_KEY] += outcome.failed
        slot.connection.errors += outcome.failed
        throttle_time_ms = self._quotas.throttle_time_ms(slot.connection)
        answer_request(request, slot, outcome, self._metadata, throttle_time_ms)
        return outcome.confirmations

    def _append_sets(
        self,
        request: ProduceRequest,
        topic: LocalTopic,
        topic_key: bytes,
        record_sets: list[PartitionSpan],
        partition_errors: PartitionErrors,
        outcome: RequestOutcome,
    ) -> list[PartitionResult]:
        """Append the record sets of one topic."""
        frame, version, _, transactional_id, acks, _, _, prepared = request
        has_transactional_id, wall_ms = transactional_id is not None, self._turn.turn_wall_ms
        results: list[PartitionResult] = []
        for index, start, end in record_sets:
            error = partition_errors.get((topic_key, index), _NONE) if partition_errors else _NONE
            partition = error or topic.partition(index)
            if isinstance(partition, ErrorCode):
                results.append(self._reject_in(topic, RejectedBatch(partition), index, outcome))
                continue
            result = append_produced(
                partition, frame, start, end, version, acks, wall_ms, has_transactional_id, prepared
            )
            if isinstance(result, RejectedBatch):
                results.append(self._reject_in(topic, result, index, outcome))
                continue
            outcome.confirmations.append((partition, result.end_offset))
            results.append((index, 0, result.base_offset, result.append_time, partition.log.start_offset))
        return results

    def _reject_in(
        self, topic: LocalTopic, rejected: RejectedBatch, index: int, outcome: RequestOutcome
    ) -> PartitionResult:
        """Reject a record set of a known topic: another broker may lead its partition."""
        if rejected.error in MISSED:
            outcome.missed[len(outcome.confirmations)] = (topic.name, index)
        return self._reject(rejected, index, outcome)

    def _reject(self, rejected: RejectedBatch, index: int, outcome: RequestOutcome) -> PartitionResult:
        error = rejected.error
        self._metrics.produce_errors[error] += 1
        if rejected.keyless and sum(map(len, outcome.keyless.values())) < KEYLESS_RECORDS_MAX:
            outcome.keyless[len(outcome.confirmations)] = rejected.keyless
        outcome.confirmations.append(None)
        outcome.failed = True
        return index, error, -1, NO_APPEND_TIME, -1

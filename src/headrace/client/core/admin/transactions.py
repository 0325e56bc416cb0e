"""Administration of transactions: list, describe and abort them, including those without a coordinator."""

from collections.abc import Iterable, Sequence

from headrace.client.core.admin.coordinators import (
    COORDINATOR_ATTEMPTS_MAX,
    ask_all_coordinators,
    ask_coordinators,
)
from headrace.client.core.admin.partitions import producers
from headrace.client.core.admin.routing import ATTEMPT_PAUSE_MS, ask_leaders
from headrace.client.core.calls import Call, Operation, Pause
from headrace.client.core.cluster import Cluster
from headrace.client.core.groups.coordinator import CoordinatorKind
from headrace.client.core.transaction_calls import end_call, is_implicit
from headrace.client.errors import BrokerError
from headrace.client.types import (
    HangingTransaction,
    ListedTransaction,
    Outcome,
    PreparedTransaction,
    TransactionDescription,
)
from headrace.model.errors import ErrorCode, error_code
from headrace.model.ids import TopicPartition
from headrace.wire.messages import describe_transactions as describe_api
from headrace.wire.messages import init_producer_id as init_api
from headrace.wire.messages import list_transactions as list_api
from headrace.wire.messages import write_txn_markers as markers_api

OPEN_STATES = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})
FENCING_TIMEOUT_MS = 1_000
"""The timeout of the id until its next producer sets another one."""

_DURATION_FROM = 1
_PATTERN_FROM = 2


def list_transactions(
    cluster: Cluster,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    duration_ms: int | None = None,
    pattern: str | None = None,
) -> Operation[tuple[ListedTransaction, ...]]:
    """Return the transactional ids of all brokers, sorted by name."""
    min_version = _PATTERN_FROM if pattern is not None else _DURATION_FROM if duration_ms is not None else 0
    request = list_api.ListTransactionsRequest(
        state_filters=tuple(states),
        producer_id_filters=tuple(producer_ids),
        duration_filter=-1 if duration_ms is None else duration_ms,
        transactional_id_pattern=pattern,
    )
    listed = yield from ask_all_coordinators(cluster, list_api, request, min_version=min_version, what="transactions")
    return tuple(
        sorted(
            ListedTransaction(each.transactional_id, each.producer_id, each.transaction_state)
            for reply in listed
            for each in reply.transaction_states
        )
    )


def describe_transactions(
    cluster: Cluster, transactional_ids: Iterable[str]
) -> Operation[dict[str, TransactionDescription]]:
    def call(transactional_id: str, node: int) -> Call:
        return Call(describe_api, describe_api.DescribeTransactionsRequest(transactional_ids=(transactional_id,)), node)

    replies = yield from ask_coordinators(
        cluster,
        transactional_ids,
        call=call,
        codes=lambda reply: (each.error_code for each in reply.transaction_states),
        kind=CoordinatorKind.TRANSACTION,
    )
    return {
        transactional_id: _description(node, reply.transaction_states[0])
        for transactional_id, (node, reply) in replies.items()
    }


def _description(node: int, found: describe_api.DescribeTransactionsResponseTransactionState) -> TransactionDescription:
    return TransactionDescription(
        transactional_id=found.transactional_id,
        error=error_code(found.error_code),
        coordinator=node,
        state=found.transaction_state,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        started_at_ms=found.transaction_start_time_ms,
        partitions=tuple(
            TopicPartition(topic.topic, partition) for topic in found.topics for partition in topic.partitions
        ),
    )


def fence_producers(cluster: Cluster, transactional_ids: Iterable[str]) -> Operation[dict[str, Outcome]]:
    """Take the ids over, as a new producer would: abort their open transactions and fence their producers."""

    def call(transactional_id: str, node: int) -> Call:
        request = init_api.InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS
        )
        return Call(init_api, request, node)

    outcomes: dict[str, Outcome] = {}
    left = list(dict.fromkeys(transactional_ids))
    for attempt in range(COORDINATOR_ATTEMPTS_MAX):
        if attempt:
            yield Pause(ATTEMPT_PAUSE_MS)
        replies = yield from ask_coordinators(
            cluster, left, call=call, codes=lambda reply: (reply.error_code,), kind=CoordinatorKind.TRANSACTION
        )
        outcomes.update((key, Outcome(error_code(reply.error_code))) for key, (_, reply) in replies.items())
        left = [key for key in left if outcomes[key].error is ErrorCode.CONCURRENT_TRANSACTIONS]
        if not left:
            break
    return outcomes


def end_transaction(cluster: Cluster, prepared: PreparedTransaction, *, commit: bool) -> Operation[None]:
    """End a transaction that its producer handed over."""
    if not prepared.partitions and not prepared.has_offsets:
        return  # An empty transaction has no coordinator state to end.
    what = f'transaction "{prepared.transactional_id}" cannot be {"committed" if commit else "aborted"}'
    for attempt in range(COORDINATOR_ATTEMPTS_MAX):
        if attempt:
            yield Pause(ATTEMPT_PAUSE_MS)
        replies = yield from ask_coordinators(
            cluster,
            [prepared.transactional_id],
            call=lambda _key, node: end_call(prepared, commit=commit, is_implicit=is_implicit(cluster))._replace(
                target=node
            ),
            codes=lambda reply: (reply.error_code,),
            kind=CoordinatorKind.TRANSACTION,
        )
        code = replies[prepared.transactional_id][1].error_code
        if code != ErrorCode.CONCURRENT_TRANSACTIONS:
            break
    if code:
        raise BrokerError(code, what)


def hanging_transactions(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> Operation[tuple[HangingTransaction, ...]]:
    """Return the open transactions of these partitions that no coordinator will end."""
    asked = list(partitions)
    suspects = yield from _open_transactions(cluster, asked)
    if not suspects:
        return ()
    owned = yield from _coordinated(cluster, {each.producer_id for each in suspects})
    suspects = {each for each in suspects if (each.producer_id, each.partition) not in owned}
    if not suspects:
        return ()
    # A transaction that has ended between the two requests is no longer open in any partition.
    still_open = yield from _open_transactions(cluster, {each.partition for each in suspects})
    known = {each[:5] for each in suspects}
    return tuple(sorted(each for each in still_open if each[:5] in known))


def _open_transactions(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Operation[set[HangingTransaction]]:
    found = yield from producers(cluster, partitions)
    for partition, described in found.items():
        if described.error:
            raise BrokerError(described.error, f"cannot see the producers of {partition}", described.message)
    return {
        HangingTransaction(
            partition,
            producer.producer_id,
            producer.producer_epoch,
            producer.coordinator_epoch,
            producer.transaction_start_offset,
            producer.last_timestamp,
        )
        for partition, described in found.items()
        for producer in described.producers
        if producer.transaction_start_offset >= 0
    }


def _coordinated(cluster: Cluster, producer_ids: Iterable[int]) -> Operation[set[tuple[int, TopicPartition]]]:
    """Return the partitions that coordinators have in open transactions of these producers."""
    listed = yield from list_transactions(cluster, producer_ids=sorted(producer_ids))
    described = yield from describe_transactions(cluster, (each.transactional_id for each in listed))
    return {
        (each.producer_id, partition)
        for each in described.values()
        if each.state in OPEN_STATES
        for partition in each.partitions
    }


def abort_hanging(
    cluster: Cluster, hanging: Iterable[HangingTransaction]
) -> Operation[dict[HangingTransaction, Outcome]]:
    """Write the abort markers that no coordinator will write."""
    outcomes = {}
    for each in hanging:
        written = yield from _write_abort(cluster, each)
        outcomes[each] = written[each.partition]
    return outcomes


def _write_abort(cluster: Cluster, hanging: HangingTransaction) -> Operation[dict[TopicPartition, Outcome]]:
    topic, index = hanging.partition
    marker = markers_api.WriteTxnMarkersRequestMarker(
        producer_id=hanging.producer_id,
        producer_epoch=hanging.producer_epoch,
        transaction_result=False,
        topics=(markers_api.WriteTxnMarkersRequestTopic(name=topic, partition_indexes=(index,)),),
        coordinator_epoch=max(hanging.coordinator_epoch, 0),
    )

    def results(response: markers_api.WriteTxnMarkersResponse) -> dict[TopicPartition, Outcome]:
        return {
            TopicPartition(topic.name, one.partition_index): Outcome(error_code(one.error_code))
            for marker in response.markers
            for topic in marker.topics
            for one in topic.partitions
        }

    return ask_leaders(
        cluster,
        [hanging.partition],
        call=lambda leader, _owned: Call(markers_api, markers_api.WriteTxnMarkersRequest(markers=(marker,)), leader),
        results=results,
        error_of=lambda outcome: outcome.error,
        failure=Outcome,
    )

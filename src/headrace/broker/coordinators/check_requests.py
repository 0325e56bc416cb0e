"""AddPartitionsToTxn requests to transaction coordinators on other brokers, many transactions in each (KIP-890)."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.partitions.verification import CHECK_WAIT_MS_MAX
from headrace.broker.peers.requests import PeerFailure
from headrace.broker.services import MetadataSource, PeerServices
from headrace.broker.timers import Timers
from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.records import LeaderBoot, Partition
from headrace.model.errors import ErrorCode, error_code
from headrace.model.ids import NodeId
from headrace.wire.apis import ApiKey
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestTopic,
    AddPartitionsToTxnRequestTransaction,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResponseTransaction,
)

CHECKS_PER_REQUEST_MAX = 500

CHECK_REQUESTS_IN_FLIGHT_MAX = 8
"""Requests that one coordinator has not answered yet; checks that come meanwhile share the next request."""

CHECKS_WAITING_MAX = 10_000
"""Checks that wait for a request to one coordinator. Above the limit they fail with a retriable error."""

_VERSION = 5

Errors = Mapping[Partition, ErrorCode]

_UNREACHABLE = ErrorCode.NETWORK_EXCEPTION
_TOO_MANY = ProposalFailed(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{CHECKS_WAITING_MAX} checks wait for this coordinator: try again"
)


class Check(NamedTuple):
    """Asks a coordinator whether the partitions belong to the producer's transaction; with `add`, adds them to it."""

    transactional_id: str
    producer: PendingProducer
    partitions: Sequence[Partition]
    add: bool


class CheckServices(MetadataSource, PeerServices, Protocol):
    """Serves the requests: the metadata offset that they carry, and the peers that get them."""


class _Coordinator:
    """The checks for the coordinators on one broker."""

    __slots__ = ("in_flight", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[tuple[Check, Proposal[Errors]]] = deque()
        self.in_flight = 0


class CheckRequests:
    def __init__(self, services: CheckServices, timers: Timers, leader: LeaderBoot) -> None:
        """`leader` is this broker, which leads the partitions."""
        self._services = services
        self._timers = timers
        self._leader = leader
        self._coordinators: dict[NodeId, _Coordinator] = {}

    def ask(self, node_id: NodeId, check: Check) -> Proposal[Errors]:
        """Ask the coordinator on another broker. The errors are its own, or NETWORK_EXCEPTION without a response."""
        answered: Proposal[Errors] = Proposal()
        coordinator = self._coordinators.setdefault(node_id, _Coordinator())
        if len(coordinator.waiting) >= CHECKS_WAITING_MAX:
            self._timers.next_turn(lambda: answered.complete(_TOO_MANY))
            return answered
        coordinator.waiting.append((check, answered))
        if len(coordinator.waiting) == 1:  # the checks of a turn share a request
            self._timers.next_turn(lambda: self._send(node_id, coordinator))
        return answered

    def _send(self, node_id: NodeId, coordinator: _Coordinator) -> None:
        waiting = coordinator.waiting
        while waiting and coordinator.in_flight < CHECK_REQUESTS_IN_FLIGHT_MAX:
            self._request(
                node_id, coordinator, [waiting.popleft() for _ in range(min(len(waiting), CHECKS_PER_REQUEST_MAX))]
            )
        if not waiting and not coordinator.in_flight:
            self._coordinators.pop(node_id, None)

    def _request(self, node_id: NodeId, coordinator: _Coordinator, sent: list[tuple[Check, Proposal[Errors]]]) -> None:
        coordinator.in_flight += 1

        def answered(response: object) -> None:
            coordinator.in_flight -= 1
            outcomes = _outcomes([check for check, _ in sent], response)
            for (_, proposal), outcome in zip(sent, outcomes, strict=True):
                proposal.complete(outcome)
            self._send(node_id, coordinator)

        self._services.peers.send(
            node_id,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            _VERSION,
            AddPartitionsToTxnRequest(
                transactions=tuple(_transaction(check) for check, _ in sent),
                metadata_offset=self._services.image.version,
                leader_id=self._leader.node_id,
                boot_id=self._leader.boot_id,
            ),
            timeout_ms=CHECK_WAIT_MS_MAX,
            then=answered,
        )


def _transaction(check: Check) -> AddPartitionsToTxnRequestTransaction:
    topics: dict[str, list[int]] = {}
    for topic, index in check.partitions:
        topics.setdefault(topic, []).append(index)
    return AddPartitionsToTxnRequestTransaction(
        transactional_id=check.transactional_id,
        producer_id=check.producer.producer_id,
        producer_epoch=check.producer.producer_epoch,
        verify_only=not check.add,
        topics=tuple(
            AddPartitionsToTxnRequestTopic(name=name, partitions=tuple(indexes)) for name, indexes in topics.items()
        ),
    )


def _outcomes(checks: list[Check], response: object) -> list[Errors]:
    """Return the errors of each check, in order; the response has the results in the order of the request."""
    if isinstance(response, PeerFailure):
        return [dict.fromkeys(check.partitions, _UNREACHABLE) for check in checks]
    assert isinstance(response, AddPartitionsToTxnResponse)
    if response.error_code:
        # Kafka's brokers translate this error too, because a producer must not take it for its own.
        denied = response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        error = ErrorCode.INVALID_TXN_STATE if denied else error_code(response.error_code)
        return [dict.fromkeys(check.partitions, error) for check in checks]
    results = response.results_by_transaction
    if [each.transactional_id for each in results] != [check.transactional_id for check in checks]:
        return [dict.fromkeys(check.partitions, ErrorCode.UNKNOWN_SERVER_ERROR) for check in checks]
    return [_errors(check, result) for check, result in zip(checks, results, strict=True)]


def _errors(check: Check, result: AddPartitionsToTxnResponseTransaction) -> Errors:
    found = {
        (topic.name, each.partition_index): error_code(each.partition_error_code)
        for topic in result.topic_results
        for each in topic.results_by_partition
    }
    return {partition: found.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in check.partitions}

"""Lookups of coordinators: a broker that joined the cluster since the last metadata is looked up before it is asked."""

import pytest

from headrace.client.core.admin import transactions
from headrace.client.core.admin.coordinators import COORDINATOR_ATTEMPTS_MAX
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BrokerError
from headrace.model.errors import ErrorCode
from headrace.wire.messages import describe_transactions, find_coordinator
from tests.client.test_admin_operations import Script, described


def coordinator(node: int, error: int = 0) -> find_coordinator.FindCoordinatorResponse:
    found = find_coordinator.FindCoordinatorResponseCoordinator(key="id", node_id=node, error_code=error)
    return find_coordinator.FindCoordinatorResponse(coordinators=(found,))


def state(error: int = 0) -> describe_transactions.DescribeTransactionsResponse:
    found = describe_transactions.DescribeTransactionsResponseTransactionState(
        transactional_id="id", transaction_state="Empty", error_code=error
    )
    return describe_transactions.DescribeTransactionsResponse(transaction_states=(found,))


def test_a_coordinator_on_a_broker_that_has_joined_since_is_asked() -> None:
    script = Script(described(nodes=(1, 2)), coordinator(3), described(nodes=(1, 2, 3)), state())
    (found,) = script.run(transactions.describe_transactions(Cluster(), ["id"])).values()
    assert (found.coordinator, found.state) == (3, "Empty")
    assert script.calls[-1].target == 3


def test_a_coordinator_that_has_moved_is_looked_up_again() -> None:
    moved = state(ErrorCode.NOT_COORDINATOR)
    script = Script(described(nodes=(1, 2)), coordinator(1), moved, coordinator(2), state())
    (found,) = script.run(transactions.describe_transactions(Cluster(), ["id"])).values()
    assert (found.coordinator, script.pauses) == (2, 1)


def test_a_coordinator_that_the_metadata_never_shows_is_not_available() -> None:
    unknown = [coordinator(3), described(nodes=(1, 2))] * COORDINATOR_ATTEMPTS_MAX
    script = Script(described(nodes=(1, 2)), *unknown)
    with pytest.raises(BrokerError, match='"id" has no coordinator: COORDINATOR_NOT_AVAILABLE'):
        script.run(transactions.describe_transactions(Cluster(), ["id"]))

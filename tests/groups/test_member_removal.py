"""LeaveGroup, the request of the classic protocol, takes members of either kind out of a group of KIP-848: that is how
administrators remove them, as with Kafka 4. And what a heartbeat of one that joins or leaves must say."""

import pytest

from headrace.core.groups.commands import LeavingMember
from headrace.core.groups.states import GroupState
from headrace.model.errors import ErrorCode
from tests.core.manual_clock import Ticket
from tests.groups.consumers import ConsumerHarness
from tests.groups.mixed import MixedHarness
from tests.groups.wire import GroupClient, group_broker

NONE = ErrorCode.NONE


def take_out(harness, *members):
    """The errors, one for each (member id, instance id)."""
    leaving = [LeavingMember(*member) for member in members]
    decision = harness.remove(leaving, Ticket("admin", "leave"))
    return [result.error for result in decision.responses[-1].response]


def test_members_of_the_new_protocol_by_id_and_by_instance():
    harness = ConsumerHarness(initial_rebalance_delay_ms=0)
    harness.beat("a")
    harness.beat("b", instance_id="two")
    harness.beat("c", instance_id="three")
    harness.settle("a", "b", "c")
    assert take_out(harness, ("a", None), ("", "two"), ("other", "three"), ("unknown", None), ("", "four")) == [
        NONE,
        NONE,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert set(harness.consumer_group.members) == {"c"}
    harness.settle("c")
    assert harness.shares()["c"] == [0, 1, 2, 3, 4, 5], "it gets what the others had"
    assert harness.beat("a").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_one_of_the_new_protocol():
    """Those that stay are a classic group again, and go on as one."""
    harness = MixedHarness()
    harness.form("a", "b")
    harness.beat("c")
    harness.settle_all(classic=("a", "b"), consumers=("c",))
    assert take_out(harness, ("c", None)) == [NONE]
    assert harness.consumer_group is None
    harness.settle_all(classic=("a", "b"))
    assert harness.group.state is GroupState.STABLE
    assert sorted(part for name in ("a", "b") for _, part in harness.held[name]) == [0, 1, 2, 3, 4, 5]


def test_no_member_is_away_under_a_name_that_is_not_its_own():
    harness = ConsumerHarness(initial_rebalance_delay_ms=0)
    harness.beat("a")
    for epoch in (-1, -2):
        assert harness.beat("a", epoch=epoch, instance_id="one").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.consumer_group.members["a"].current.epoch == 1


@pytest.fixture
def client():
    return GroupClient(group_broker())


def test_one_that_joins_again_says_what_it_subscribes_to(client):
    client._broker.run_until(lambda: client.consumer_beat("m").error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert client.consumer_beat("m", epoch=0, subscribed_topic_names=None).error_code == ErrorCode.INVALID_REQUEST
    assert client.consumer_beat("m", epoch=0).error_code == NONE
    nothing = {"subscribed_topic_names": None, "subscribed_topic_regex": ""}
    assert client.consumer_beat("n", epoch=0, **nothing).error_code == NONE, "an empty expression says it: to nothing"

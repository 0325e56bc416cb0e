"""The coordinator and its markers when writes fail: nothing is taken for granted, and everything ends."""

import errno

import pytest

from headrace.model.errors import ErrorCode
from tests.transactions.test_transactions import committed, stable_offset, wait_for_end
from tests.transactions.wire import TransactionClient, known, machine_of, transaction_broker, wait_loaded

NONE = ErrorCode.NONE


@pytest.fixture
def broker():
    return transaction_broker()


@pytest.fixture
def client(broker):
    client = TransactionClient(broker)
    assert client.init() is NONE
    assert client.write(b"v") is NONE
    return client


def no_room(broker, path):
    """For the next write."""
    broker.machine.disk.faults.fail("write_vector", code=errno.ENOSPC, path_contains=path)


def test_an_end_that_could_not_be_written_was_not_decided(broker, client):
    no_room(broker, "__transaction_state")
    assert client.commit() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    wait_loaded(broker)
    assert known(broker).state == "Ongoing"
    assert client.markers() == []
    assert client.commit() is NONE
    wait_for_end(broker)
    assert committed(broker) == [b"v"]


def test_a_marker_that_found_no_room_is_written_later(broker, client):
    no_room(broker, "/t-0/")
    asked = client.send_end()
    broker.run_until(lambda: broker.partition("t").space.full)
    assert client.wait(asked).error_code == NONE
    assert (known(broker).state, stable_offset(broker)) == ("PrepareCommit", 0)
    broker.pass_time(10_000)
    wait_for_end(broker)
    assert (client.markers(), committed(broker)) == (["COMMIT"], [b"v"])
    assert broker.node.broker.transactions.markers.unwritten == 0


def test_a_completion_that_could_not_be_written_is_tried_again(broker, client):
    machine = machine_of(broker)
    decided = machine.complete

    def complete(*arguments):
        machine.complete = decided
        no_room(broker, "__transaction_state")
        return decided(*arguments)

    machine.complete = complete
    assert client.commit() is NONE
    broker.run_until(lambda: machine_of(broker) is not machine and machine_of(broker) is not None)
    broker.pass_time(1_000)
    wait_for_end(broker)
    assert known(broker).state == "CompleteCommit"
    assert committed(broker) == [b"v"]
    assert client.write(b"w") is NONE
    assert client.commit() is NONE
    wait_for_end(broker)
    assert committed(broker) == [b"v", b"w"]


def test_endings_whose_commit_takes_too_long_are_not_forgotten(broker, client):
    """Those who waited got an error; the markers are sent when the record is committed after all."""
    assert broker.client().alter_configs(2, "__transaction_state", {"flush.messages": 1}) == NONE
    broker.hold_syncs()
    asked = client.send_end()
    broker.pass_time(40_000)
    assert client.wait(asked).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.release_syncs()
    broker.pass_time(1_000)
    wait_for_end(broker)
    assert committed(broker) == [b"v"]
    assert client.markers() == ["COMMIT"]

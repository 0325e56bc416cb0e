"""A coordinator whose log is slow to sync: late completions must not be taken for something that came since."""

from headrace.broker.coordinators.transactions import COMMIT_WAIT_MS_MAX
from headrace.model.errors import ErrorCode
from tests.broker.virtual import TOPIC_RESOURCE
from tests.transactions.wire import TransactionClient, known, transaction_broker

NONE = ErrorCode.NONE


def test_the_end_of_a_transaction_that_was_written_late_is_not_that_of_the_next_one():
    """Without a new epoch for each (before transaction.version 2), two transactions of a producer look the same."""
    broker = transaction_broker()
    client = TransactionClient(broker).initialized()
    assert client.alter_configs(TOPIC_RESOURCE, "__transaction_state", {"flush.messages": 1}) == 0
    assert client.add(0) == [NONE]
    assert client.write(b"first", version=11) is NONE
    client.send_end(version=4)
    broker.run_until(lambda: known(broker).state == "CompleteCommit")
    broker.hold_syncs()
    broker.steps()
    broker.world.time.advance(COMMIT_WAIT_MS_MAX)
    broker.world.step()
    broker.release_syncs()
    assert client.add(0) == [NONE]
    assert client.write(b"second", version=11) is NONE
    assert client.commit(version=4) is NONE
    broker.pass_time(1_000)
    assert known(broker).state == "CompleteCommit"
    assert client.markers() == ["COMMIT", "COMMIT"]
    assert client.values("t", isolation=1)[0::2] == [b"first", b"second"]

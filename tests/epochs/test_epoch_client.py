"""The client's calls for epochs, a real broker, and clients of others beside it."""

from collections.abc import Iterator

import pytest

from headrace.client import Admin
from headrace.client.blocking.epochs import Epochs
from headrace.client.epochs import EpochMember, EpochOutcome
from headrace.client.errors import BrokerError, EpochFenced
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey
from tests.broker_process.raw_connection import RawConnection
from tests.epochs.writing import committed_values, write

pytestmark = pytest.mark.process

OWNER = "query-1/sink"
LATE_WRITES_MAX = 10_000


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name("t"))


@pytest.fixture
def epochs(broker: EmbeddedBroker) -> Iterator[Epochs]:
    with Epochs(broker.bootstrap_servers) as epochs:
        yield epochs


def begun(epochs: Epochs, owner: str, attempt: int = 0, *, run: str = "r1", batch: int = 0) -> EpochMember:
    member = epochs.begin_epoch_member(owner, run=run, batch_id=batch, task_attempt_id=attempt)
    assert member is not None
    return member


def test_a_batch_of_two_tasks(broker: EmbeddedBroker, epochs: Epochs, topic: str) -> None:
    assert epochs.supported()
    owner = f"{OWNER}/{topic}"
    first, second, loser = (begun(epochs, owner, attempt) for attempt in range(3))
    with RawConnection(broker.bootstrap_servers) as connection:
        for member, value in ((first, b"a"), (second, b"b"), (loser, b"c")):
            assert write(connection, member, topic, value) is ErrorCode.NONE
        assert epochs.renew(first) == first
        outcome = epochs.commit_epoch(owner, run="r1", batch_id=0, members=[first, second])
        assert outcome is EpochOutcome.COMMITTED
        # Until its marker is there, the loser's records join those that the marker hides.
        errors = (write(connection, loser, topic, b"late", sequence=number) for number in range(1, LATE_WRITES_MAX))
        refused = next(error for error in errors if error is not ErrorCode.NONE)
        assert refused in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert committed_values(broker.bootstrap_servers, topic, 2) == [b"a", b"b"]
    again = epochs.commit_epoch(owner, run="r1", batch_id=0, members=[second, first])
    assert again is EpochOutcome.ALREADY_COMMITTED
    assert epochs.begin_epoch_member(owner, run="r2", batch_id=0, task_attempt_id=9) is None
    found = epochs.describe(owner)
    assert (found.run, found.committed_batch_id, found.committed_run) == ("r2", 0, "r1")
    assert len(found.members) == 3


def test_what_is_refused_says_why(epochs: Epochs, topic: str) -> None:
    owner = f"{OWNER}/{topic}"
    member = begun(epochs, owner)
    begun(epochs, owner, run="r2")
    with pytest.raises(EpochFenced, match="a newer run"):
        epochs.commit_epoch(owner, run="r1", batch_id=0, members=[member])
    with pytest.raises(EpochFenced):
        epochs.renew(member)
    with pytest.raises(BrokerError, match="was aborted, has expired or is not known") as refused:
        epochs.commit_epoch(owner, run="r2", batch_id=0, members=[member])
    assert refused.value.code == ErrorCode.TRANSACTION_ABORTABLE
    assert epochs.abort_epoch(owner, run="r2", batch_id=0) is EpochOutcome.ABORTED
    with pytest.raises(BrokerError, match="none of them '#'"):
        epochs.abort_epoch("a#b", run="r2", batch_id=0)
    assert epochs.commit_epoch(owner, run="r2", batch_id=0, members=[]) is EpochOutcome.COMMITTED
    with pytest.raises(BrokerError, match="with other members: give each write an owner of its own"):
        epochs.commit_epoch(owner, run="r2", batch_id=0, members=[member])
    assert epochs.abort_epoch(owner, run="r2", batch_id=0) is EpochOutcome.ALREADY_COMMITTED


def test_the_private_keys_are_advertised(broker: EmbeddedBroker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        keys = {each.api_key for each in admin.api_versions()}
    assert {ApiKey.BEGIN_EPOCH_MEMBER, ApiKey.COMMIT_EPOCH, ApiKey.ABORT_EPOCH, ApiKey.DESCRIBE_EPOCHS} <= keys

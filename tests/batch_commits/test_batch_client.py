"""The client's calls of batch commits with a real broker, beside clients of others."""

from collections.abc import Iterator

import pytest

from headrace.client import Admin
from headrace.client.batch_commits import BatchOutcome, BatchWriter
from headrace.client.blocking.batch_commits import BatchCommits
from headrace.client.errors import BatchFenced, BrokerError
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey
from tests.batch_commits.task_records import committed_values, write
from tests.broker_process.raw_connection import RawConnection

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
def batch_commits(broker: EmbeddedBroker) -> Iterator[BatchCommits]:
    with BatchCommits(broker.bootstrap_servers) as batch_commits:
        yield batch_commits


def begun(batch_commits: BatchCommits, owner: str, attempt: int = 0, *, run: str = "r1", batch: int = 0) -> BatchWriter:
    writer = batch_commits.begin_batch_writer(owner, run=run, batch_id=batch, task_attempt_id=attempt)
    assert writer is not None
    return writer


def test_a_batch_of_two_tasks(broker: EmbeddedBroker, batch_commits: BatchCommits, topic: str) -> None:
    assert batch_commits.supported()
    owner = f"{OWNER}/{topic}"
    first, second, loser = (begun(batch_commits, owner, attempt) for attempt in range(3))
    with RawConnection(broker.bootstrap_servers) as connection:
        for writer, value in ((first, b"a"), (second, b"b"), (loser, b"c")):
            assert write(connection, writer, topic, value) is ErrorCode.NONE
        assert batch_commits.renew(first) == first
        outcome = batch_commits.commit_batch(owner, run="r1", batch_id=0, writers=[first, second])
        assert outcome is BatchOutcome.COMMITTED
        # Until its marker is there, the loser's records join those that the marker hides.
        errors = (write(connection, loser, topic, b"late", sequence=number) for number in range(1, LATE_WRITES_MAX))
        refused = next(error for error in errors if error is not ErrorCode.NONE)
        assert refused in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert committed_values(broker.bootstrap_servers, topic, 2) == [b"a", b"b"]
    again = batch_commits.commit_batch(owner, run="r1", batch_id=0, writers=[second, first])
    assert again is BatchOutcome.ALREADY_COMMITTED
    assert batch_commits.begin_batch_writer(owner, run="r2", batch_id=0, task_attempt_id=9) is None
    found = batch_commits.describe(owner)
    assert (found.run, found.committed_batch_id, found.committed_run) == ("r2", 0, "r1")
    assert len(found.writers) == 3


def test_what_is_refused_says_why(batch_commits: BatchCommits, topic: str) -> None:
    owner = f"{OWNER}/{topic}"
    writer = begun(batch_commits, owner)
    begun(batch_commits, owner, run="r2")
    with pytest.raises(BatchFenced, match="a newer run"):
        batch_commits.commit_batch(owner, run="r1", batch_id=0, writers=[writer])
    with pytest.raises(BatchFenced):
        batch_commits.renew(writer)
    with pytest.raises(BrokerError, match="was aborted, has expired or is unknown") as refused:
        batch_commits.commit_batch(owner, run="r2", batch_id=0, writers=[writer])
    assert refused.value.code == ErrorCode.TRANSACTION_ABORTABLE
    assert batch_commits.abort_batch(owner, run="r2", batch_id=0) is BatchOutcome.ABORTED
    with pytest.raises(BrokerError, match="none of them '#'"):
        batch_commits.abort_batch("a#b", run="r2", batch_id=0)
    assert batch_commits.commit_batch(owner, run="r2", batch_id=0, writers=[]) is BatchOutcome.COMMITTED
    with pytest.raises(BrokerError, match="with other writers: use a separate owner for each write"):
        batch_commits.commit_batch(owner, run="r2", batch_id=0, writers=[writer])
    assert batch_commits.abort_batch(owner, run="r2", batch_id=0) is BatchOutcome.ALREADY_COMMITTED


def test_the_private_keys_are_advertised(broker: EmbeddedBroker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        keys = {each.api_key for each in admin.api_versions()}
    assert {ApiKey.BEGIN_BATCH_WRITER, ApiKey.COMMIT_BATCH, ApiKey.ABORT_BATCH, ApiKey.DESCRIBE_BATCHES} <= keys

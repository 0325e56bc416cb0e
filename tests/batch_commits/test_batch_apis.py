"""Batch commits through a whole node: what readers of committed records see, and when."""

import pytest

from headrace.broker.coordinators import transactions
from headrace.core.controller.records import BATCH_VERSION
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages.api_versions import ApiVersionsRequest
from tests.batch_commits.wire import OWNER, BatchClient
from tests.transactions.test_transactions import committed, stable_offset
from tests.transactions.wire import TransactionClient, known, machine_of, transaction_broker, wait_loaded

NONE = ErrorCode.NONE
DONE, ALREADY = (NONE, False), (NONE, True)


@pytest.fixture
def broker():
    return transaction_broker()


@pytest.fixture
def driver(broker):
    return BatchClient(broker)


def task(broker, **options):
    return BatchClient(broker).begun(**options)


def wait_for_ends(broker):
    """Wait until no transaction is ending."""
    broker.run_until(
        lambda: (
            not any(each.state.startswith("Prepare") for each in machine_of(broker, OWNER).tables.transactions.values())
        )
    )


def test_two_tasks_become_visible_together(broker, driver):
    first, second = task(broker, attempt=1), task(broker, attempt=2)
    assert first.write(b"a") is second.write(b"b") is first.write(b"c") is NONE
    assert stable_offset(broker) == 0
    assert driver.commit_batch(first, second) == DONE
    wait_for_ends(broker)
    assert committed(broker) == [b"a", b"b", b"c"]
    assert driver.commit_batch(first, second) == ALREADY
    assert first.markers() == ["COMMIT", "COMMIT"]


def test_the_attempt_that_was_not_named_is_never_seen(broker, driver):
    winner, loser, idle = (task(broker, attempt=number) for number in range(3))
    assert winner.write(b"right") is loser.write(b"wrong") is NONE
    assert driver.commit_batch(winner) == DONE
    wait_for_ends(broker)
    assert loser.write(b"late") in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert idle.write(b"later") in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert committed(broker) == [b"right"]


def test_writers_may_add_their_partitions_themselves(broker, driver):
    """As clients of before transaction.version 2 do."""
    old = task(broker)
    assert old.add(0) == [NONE]
    assert old.write(b"v", version=11) is NONE
    assert driver.commit_batch(old) == DONE
    wait_for_ends(broker)
    assert committed(broker) == [b"v"]


def test_a_writer_cannot_commit_by_itself(broker, driver):
    writer = task(broker)
    writer.write(b"v")
    assert writer.commit() is ErrorCode.INVALID_TXN_STATE
    assert writer.abort() is NONE
    assert driver.commit_batch(writer) == (ErrorCode.TRANSACTION_ABORTABLE, False)
    wait_for_ends(broker)
    assert committed(broker) == []


def test_a_newer_run_aborts_the_older_one(broker, driver):
    zombie = task(broker, run="1")
    zombie.write(b"old")
    fresh = task(broker, run="2")
    fresh.write(b"new")
    assert zombie.write(b"old") in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert driver.commit_batch(zombie, run="1") == (ErrorCode.PRODUCER_FENCED, False)
    assert driver.commit_batch(fresh, run="2") == DONE
    wait_for_ends(broker)
    assert committed(broker) == [b"new"]
    assert driver.begin(run="3").already_committed


def test_a_crash_between_the_commit_and_its_markers(broker, driver, monkeypatch):
    monkeypatch.setattr(transactions.MarkerSender, "send", lambda sender, marker, done, is_void: None)
    first, second, other = (task(broker, attempt=number) for number in range(3))
    assert first.write(b"a") is second.write(b"b") is other.write(b"never") is NONE
    assert driver.commit_batch(first, second) == DONE
    assert (committed(broker), known(broker, "q#0").state) == ([], "PrepareCommit")
    monkeypatch.undo()
    broker.machine.kill()
    broker.boot()
    wait_loaded(broker)
    wait_for_ends(broker)
    assert committed(broker) == [b"a", b"b"]
    again = BatchClient(broker)
    assert again.begin(run="2", attempt=9).already_committed
    assert again.commit_batch(run="2") == ALREADY
    assert again.abort_batch(run="2") == (NONE, True, 0)


def test_a_commit_that_could_not_be_written_was_not_decided(broker, driver):
    writer = task(broker)
    writer.write(b"v")
    broker.machine.disk.faults.fail("write_vector", code=28, path_contains="__transaction_state")
    assert driver.commit_batch(writer) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, False)
    wait_loaded(broker)
    assert known(broker, "q#0").state == "Ongoing"
    assert driver.commit_batch(writer) == DONE
    wait_for_ends(broker)
    assert committed(broker) == [b"v"]


def test_what_an_operator_sees(broker, driver):
    first, second = task(broker, attempt=1), task(broker, attempt=2)
    first.write(b"a")
    found = driver.describe_batches()
    assert (found.run, found.committed_batch_id) == ("1", -1)
    assert [(each.transactional_id, each.state, each.batch_id, each.task_attempt_id) for each in found.writers] == [
        ("q#0", "Ongoing", 0, 1),
        ("q#1", "Empty", 0, 2),
    ]
    (described,) = driver.describe("q#0")
    assert (described.transaction_state, described.producer_id) == ("Ongoing", first.producer_id)
    assert {each.transactional_id for each in driver.transactions(pattern="q#.*").transaction_states} == {"q#0", "q#1"}
    driver.commit_batch(first, second)
    wait_for_ends(broker)
    found = driver.describe_batches()
    assert (found.committed_batch_id, found.committed_run, {each.run for each in found.writers}) == (0, "1", {""})
    assert driver.describe_batches("unknown").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert driver.describe_batches("").error_code == ErrorCode.INVALID_REQUEST
    assert "headrace_batch_owners 1" in metrics_text(broker)


def metrics_text(broker):
    families = broker.node.broker.transactions.families()
    return "\n".join(f"{family.name} {value}" for family in families for _labels, value in family.samples)


def test_permissions_are_those_of_transactional_ids(broker, driver, monkeypatch):
    asked = []

    def refuse(principal, host, operation, resource_type, name):
        asked.append((operation, resource_type, name))
        return False

    monkeypatch.setattr(broker.node.broker.access, "authorize", refuse)
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert driver.begin().error_code == refused
    assert driver.commit_batch() == (refused, False)
    assert driver.abort_batch() == (refused, False, 0)
    assert driver.describe_batches().error_code == refused
    write, describe = (
        (operation, AclResourceType.TRANSACTIONAL_ID, OWNER) for operation in (Operation.WRITE, Operation.DESCRIBE)
    )
    assert asked == [write, write, write, describe]


def test_a_commit_needs_write_on_the_topics_of_its_writers(broker, driver, monkeypatch):
    writer = task(broker, attempt=1)
    writer.write(b"a")
    access, may_write = broker.node.broker.access, False
    decide = access.authorize

    def refuse(principal, host, operation, resource_type, name):
        is_topic = (operation, resource_type, name) == (Operation.WRITE, AclResourceType.TOPIC, "t")
        return may_write if is_topic else decide(principal, host, operation, resource_type, name)

    monkeypatch.setattr(access, "authorize", refuse)
    assert driver.commit_batch(writer) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False)
    may_write = True
    assert driver.commit_batch(writer) == DONE


def test_a_second_write_of_a_repeated_batch_is_not_passed_over(broker, driver):
    """The run that committed the first was killed before the second; requests without an id are as they were."""
    first = task(broker, attempt=1)
    first.write(b"a")
    assert driver.commit_batch(first, write_id="w1") == DONE
    assert BatchClient(broker).begin(run="2").already_committed
    assert driver.commit_batch(run="2", write_id="w2") == (NONE, True)
    assert driver.commit_batch(run="2", write_id="w2") == (NONE, True)
    assert driver.commit_batch(run="2") == (NONE, True)
    assert driver.commit_batch(run="2", write_id="w3") == (ErrorCode.INVALID_TXN_STATE, False)
    assert driver.commit_batch(run="2", write_id="w" * 201) == (ErrorCode.INVALID_REQUEST, False)


def test_the_feature_can_be_off(broker, driver):
    assert broker.node.broker.image.features[BATCH_VERSION] == 1
    answer = driver.ask(
        ApiKey.API_VERSIONS, 3, ApiVersionsRequest(client_software_name="t", client_software_version="1")
    )
    assert BATCH_VERSION in {each.name for each in answer.finalized_features}
    broker.node.broker.image.features[BATCH_VERSION] = 0
    assert driver.begin().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert driver.commit_batch() == (ErrorCode.UNSUPPORTED_VERSION, False)


BATCHES = 300


@pytest.mark.slow
def test_many_batches_leave_little_behind(broker, driver):
    """The ids of the pool are all that a partition ever sees. Whole batches of 5,000 are in test_batch_commits.py."""
    tasks = [BatchClient(broker) for _ in range(3)]
    for batch in range(BATCHES):
        for number, each in enumerate(tasks):
            each.begun(batch=batch, attempt=batch * 3 + number)
            assert each.write(b"%d" % batch) is NONE
        assert driver.commit_batch(*tasks[:2], batch=batch) == DONE
    wait_for_ends(broker)
    pool = driver.describe_batches().writers
    assert len(pool) <= 9, "three at work, and three of each of the two batches before whose markers are on their way"
    assert len(broker.partition("t").log.producers) <= len(pool)
    assert committed(broker) == [b"%d" % batch for batch in range(BATCHES) for _ in range(2)]


@pytest.mark.parametrize("restart", ["never", "kill", "stop"])
def test_a_batch_that_is_replayed_after_a_jump_of_the_wall_clock_is_not_written_again(restart):
    settings = {"transaction.remove.expired.transaction.cleanup.interval.ms": "1000"}
    broker = transaction_broker(settings=settings)
    writer, producer = task(broker), TransactionClient(broker)
    assert producer.init() is NONE
    assert writer.write(b"once") is NONE
    assert BatchClient(broker).commit_batch(writer) == DONE
    wait_for_ends(broker)
    broker.machine.clock.jump_wall(8 * 24 * 3_600_000)
    for _ in range(3):
        broker.pass_time(1_000)
    if restart != "never":
        (broker.machine.kill if restart == "kill" else broker.stop)()
        broker.boot()
        wait_loaded(broker)
        for _ in range(3):
            broker.pass_time(1_000)
    assert BatchClient(broker).begin(run="2", batch=0, attempt=9).already_committed
    assert known(broker) is not None
    assert committed(broker) == [b"once"]

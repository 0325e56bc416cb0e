"""The power fails, on topics that sync nothing by themselves: what was answered as committed is there, once."""

import pytest

from headrace.broker.partitions import syncs
from headrace.broker.partitions.syncs import SYNC_WAIT_MS_MAX
from headrace.model.errors import ErrorCode
from tests.batch_commits.test_batch_apis import ALREADY, DONE, wait_for_ends
from tests.batch_commits.wire import OWNER, BatchClient
from tests.transactions.test_transactions import committed, stable_offset
from tests.transactions.wire import machine_of, transaction_broker, wait_loaded

NONE = ErrorCode.NONE
PARTITIONS = range(3)
SETTINGS = {"transaction.state.log.num.partitions": "1"}


def power_cut(broker):
    broker.machine.cut_power()
    broker.boot()
    wait_loaded(broker)


def written(broker, value, *, run="1", batch=0, attempt):
    task = BatchClient(broker).begun(run=run, batch=batch, attempt=attempt)
    for partition in PARTITIONS:
        task.sequence = 0
        assert task.write(value, partition=partition) is NONE
    return task


@pytest.mark.parametrize("steps", [0, 1, 3, 6, 12, 40])
@pytest.mark.parametrize("seed", range(6))
def test_an_answered_commit_survives_the_power(seed, steps):
    """Every unsynced page and name is kept, dropped or torn as the seed draws; markers may be on their way."""
    broker = transaction_broker(seed=seed, settings=SETTINGS)
    tasks = [written(broker, b"row %d" % number, attempt=number) for number in range(2)]
    lost = written(broker, b"not named", attempt=2)
    assert BatchClient(broker).commit_batch(*tasks) == DONE
    broker.steps(steps)
    power_cut(broker)
    assert BatchClient(broker).commit_batch(*tasks) == ALREADY
    wait_for_ends(broker)
    for partition in PARTITIONS:
        assert committed(broker, partition=partition) == [b"row 0", b"row 1"]
        assert stable_offset(broker, partition=partition) == broker.partition("t", partition).log.end_offset
    assert lost.producer_id >= 0


@pytest.mark.parametrize("seed", range(8))
def test_batch_after_batch_with_cuts_in_between(seed):
    """The ids of the pool are used again: what was aborted or lost must not come back with them."""
    broker = transaction_broker(seed=seed, settings=SETTINGS)
    kept = []
    for batch in range(4):
        run = f"{batch}"
        speculative = written(broker, b"aborted %d" % batch, run=run, batch=batch, attempt=9)
        named = [written(broker, b"%d %d" % (batch, number), run=run, batch=batch, attempt=number) for number in (0, 1)]
        if batch % 2:
            assert BatchClient(broker).abort_batch(run=run, batch=batch)[0] is NONE
            broker.steps((seed * 5 + batch) % 30)
            power_cut(broker)
            outcome = BatchClient(broker).commit_batch(*named, run=run, batch=batch)[0]
            assert outcome in (NONE, ErrorCode.TRANSACTION_ABORTABLE)
            if outcome is NONE:
                kept += [b"%d %d" % (batch, number) for number in (0, 1)]
        else:
            assert BatchClient(broker).commit_batch(*named, run=run, batch=batch) == DONE
            kept += [b"%d %d" % (batch, number) for number in (0, 1)]
            broker.steps((seed * 7 + batch) % 30)
            power_cut(broker)
        assert speculative.producer_id >= 0
    wait_for_ends(broker)
    for partition in PARTITIONS:
        assert committed(broker, partition=partition) == kept


@pytest.mark.parametrize("seed", range(6))
def test_a_cut_in_the_middle_of_a_batch_leaves_nothing_of_it(seed):
    """Whatever of the writers' rows and of the coordinator's records is lost: the next run writes the batch once."""
    broker = transaction_broker(seed=seed, settings=SETTINGS)
    for attempt in range(2):
        written(broker, b"lost", run="1", attempt=attempt)
    broker.steps(seed)
    power_cut(broker)
    tasks = [written(broker, b"again %d" % number, run="2", attempt=number) for number in range(2)]
    assert BatchClient(broker).commit_batch(*tasks, run="2") == DONE
    wait_for_ends(broker)
    for partition in PARTITIONS:
        assert committed(broker, partition=partition) == [b"again 0", b"again 1"]
        assert stable_offset(broker, partition=partition) == broker.partition("t", partition).log.end_offset


def flushes(broker):
    return [name for name in broker.machine.spawner.waiting_names() if "_sync." in name or "DataSync" in name]


def test_a_commit_is_answered_when_its_rows_and_then_its_record_are_synced():
    broker = transaction_broker(settings=SETTINGS)
    tasks = [written(broker, b"row", attempt=number) for number in range(2)]
    driver = BatchClient(broker)
    broker.hold_syncs()
    answer = driver.send_commit(*tasks)
    broker.steps()
    assert not driver.has_answer(answer)
    assert len(flushes(broker)) == len(PARTITIONS), "one for each partition, of both writers"
    state = broker.partition("__transaction_state").log
    before = state.end_offset
    broker.release_syncs()
    broker.run_until(lambda: state.end_offset > before)
    broker.hold_syncs()
    broker.steps()
    assert not driver.has_answer(answer), "the record is written, and not synced"
    broker.release_syncs()
    assert driver.wait(answer).error_code == NONE
    wait_for_ends(broker)


def test_commits_at_the_same_time_share_their_syncs():
    broker = transaction_broker(settings=SETTINGS)
    owners = [f"q{number}" for number in range(5)]
    tasks = []
    for number, owner in enumerate(owners):
        tasks.append(BatchClient(broker).begun(owner=owner, attempt=number))
        assert tasks[-1].write(b"row") is NONE
    broker.hold_syncs()
    drivers = [BatchClient(broker) for _ in owners]
    asked = list(zip(drivers, tasks, owners, strict=True))
    answers = [(driver, driver.send_commit(task, owner=owner)) for driver, task, owner in asked]
    broker.steps()
    assert len(flushes(broker)) == 1
    broker.release_syncs()
    assert [driver.wait(answer).error_code for driver, answer in answers] == [NONE] * 5


def test_a_sync_that_does_not_end_is_reported_and_the_commit_may_come_again():
    broker = transaction_broker(settings=SETTINGS)
    task, driver = written(broker, b"row", attempt=0), BatchClient(broker)
    broker.hold_syncs()
    answer = driver.send_commit(task)
    broker.steps()
    broker.pass_time(SYNC_WAIT_MS_MAX - 1_000)
    assert not driver.has_answer(answer)
    broker.pass_time(1_100)
    refused = driver.wait(answer)
    assert (refused.error_code, "synced" in refused.error_message) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, True)
    broker.release_syncs()
    assert driver.commit_batch(task) == DONE


def test_waits_for_syncs_are_limited(monkeypatch):
    broker = transaction_broker(settings=SETTINGS)
    task, driver = written(broker, b"row", attempt=0), BatchClient(broker)
    monkeypatch.setattr(syncs, "SYNC_WAITS_MAX", 0)
    assert driver.commit_batch(task) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, False)
    monkeypatch.undo()
    assert driver.commit_batch(task) == DONE


def test_a_disk_that_fails_during_the_sync_commits_nothing():
    broker = transaction_broker(settings={**SETTINGS, "log.dirs": "data,more"})
    task, driver = written(broker, b"row", attempt=0), BatchClient(broker)
    broker.hold_syncs()
    answer = driver.send_commit(task)
    broker.steps()
    lost = broker.partition("t", 0)
    lost.take_offline(ErrorCode.KAFKA_STORAGE_ERROR)
    broker.release_syncs()
    assert driver.wait(answer).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.describe_batches().committed_batch_id == -1


def test_rows_of_a_deleted_topic_hold_up_no_commit():
    broker = transaction_broker(settings=SETTINGS).with_topic("gone")
    task, driver = written(broker, b"row", attempt=0), BatchClient(broker)
    task.sequence = 0
    assert task.write(b"lost", topic="gone") is NONE
    driver.delete_topic("gone")
    assert driver.commit_batch(task) == DONE


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_were_lost_before_the_commit_are_not_committed(seed):
    """The driver lives, the tasks were acknowledged, and the power takes what nothing has synced yet."""
    broker = transaction_broker(seed=seed, settings=SETTINGS)
    tasks = [written(broker, b"row %d" % number, attempt=number) for number in range(2)]
    power_cut(broker)
    driver = BatchClient(broker)
    assert driver.commit_batch(*tasks) == (ErrorCode.TRANSACTION_ABORTABLE, False)
    late = BatchClient(broker, tasks[0].transactional_id)
    late.producer_id, late.producer_epoch, late.sequence = tasks[0].producer_id, tasks[0].producer_epoch, 1
    late.write(b"more")  # taken or not, it belongs to what is being aborted
    assert driver.commit_batch(*tasks)[0] is ErrorCode.TRANSACTION_ABORTABLE
    broker.run_until(lambda: broker.world.time.advance(1_000) or not open_writers(broker))
    wait_for_ends(broker)
    again = [written(broker, b"again %d" % number, attempt=10 + number) for number in range(2)]
    assert driver.commit_batch(*again) == DONE
    wait_for_ends(broker)
    for partition in PARTITIONS:
        assert committed(broker, partition=partition) == [b"again 0", b"again 1"]
        assert stable_offset(broker, partition=partition) == broker.partition("t", partition).log.end_offset


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_was_replaced_stays_so_after_a_cut(seed, tasks):
    """The newer run has begun its tasks, and written nothing yet."""
    broker = transaction_broker(seed=seed, settings=SETTINGS)
    old = written(broker, b"old", run="1", attempt=0)
    for attempt in range(tasks):
        BatchClient(broker).begun(run="2", attempt=attempt)
    power_cut(broker)
    assert BatchClient(broker).commit_batch(old, run="1") == (ErrorCode.PRODUCER_FENCED, False)


def open_writers(broker):
    return machine_of(broker, OWNER).tables.pools.of(OWNER).open


@pytest.mark.parametrize("ends", ["kill", "stop"])
def test_a_batch_continues_when_only_the_broker_ended(ends):
    broker = transaction_broker(settings=SETTINGS)
    task = written(broker, b"row", attempt=0)
    (broker.machine.kill if ends == "kill" else broker.stop)()
    broker.boot()
    wait_loaded(broker)
    assert BatchClient(broker).commit_batch(task) == DONE
    wait_for_ends(broker)
    assert committed(broker) == [b"row"]


def test_an_attempt_that_asks_again_after_a_cut_gets_another_id_when_its_first_is_aborted():
    broker = transaction_broker(settings=SETTINGS)
    written(broker, b"lost", attempt=0)
    power_cut(broker)
    task = BatchClient(broker)
    assert task.begin(attempt=0).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.run_until(lambda: broker.world.time.advance(1_000) or not task.begin(attempt=0).error_code)
    assert task.write(b"row") is NONE
    assert BatchClient(broker).commit_batch(task) == DONE
    wait_for_ends(broker)
    assert committed(broker) == [b"row"]


@pytest.mark.parametrize("seed", range(8))
def test_an_identity_is_lent_once_although_the_power_fails(seed):
    """A task may send its first row after the broker has come back."""
    broker = transaction_broker(seed=seed, settings=SETTINGS)
    tasks = [written(broker, b"row", attempt=attempt) for attempt in range(2)]
    assert BatchClient(broker).commit_batch(*tasks) == DONE
    wait_for_ends(broker)
    late = BatchClient(broker).begun(batch=1, attempt=2)
    power_cut(broker)
    wait_for_ends(broker)
    others = [BatchClient(broker).begun(batch=1, attempt=attempt) for attempt in (3, 4)]
    assert late.identity() not in [other.identity() for other in others]

"""Expiry by the wall clock and by the uptime of the coordinator: both must exceed the limit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.coordination.machine import RecordRefused
from headrace.core.coordination.uptime import UPTIME_CHECKPOINT_MS
from headrace.core.transactions.records import TransactionRecord, TransactionRecords, UptimeRecord
from headrace.core.transactions.states import TransactionState
from headrace.model.errors import ErrorCode
from tests.batch_commits.harness import OWNER, BatchHarness
from tests.transactions.harness import ID, Harness

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LIMIT_MS = 2 * HOUR_MS


def small():
    """Two hours instead of seven days: a checkpoint comes every minute."""
    return BatchHarness(id_expiration_ms=LIMIT_MS, expiry_interval_ms=600_000)


def test_a_jump_of_the_wall_clock_forgets_nothing():
    harness = small()
    harness.init("a")
    harness.written_batch(0)
    harness.wall_ms += 8 * DAY_MS
    harness.wait(LIMIT_MS - 600_000)
    assert ID in harness.machine.tables.transactions
    assert harness.owner.committed_batch_id == 0
    assert harness.begin("again", run="2", batch=0, attempt=7).already_committed
    harness.wait(2 * LIMIT_MS + HOUR_MS)
    assert not harness.machine.tables.transactions
    assert harness.owner is None


def test_a_jump_while_the_coordinator_is_away_forgets_nothing():
    harness = small()
    harness.init("a")
    harness.written_batch(0)
    for _ in range(3):
        harness.wall_ms += 8 * DAY_MS
        harness.restart()
        harness.wait(LIMIT_MS // 4)
    assert ID in harness.machine.tables.transactions
    assert harness.begin("again", run="2", batch=0, attempt=7).already_committed


def test_uptime_adds_up_over_restarts():
    """A coordinator that is never up for as long as the limit forgets all the same, and loses a minute a restart."""
    harness = small()
    harness.init("a")
    for _ in range(14):
        harness.wait(600_000 + UPTIME_CHECKPOINT_MS // 2)
        harness.restart()
    harness.wait(600_000)
    assert ID not in harness.machine.tables.transactions


def test_a_wall_clock_that_was_set_back_keeps_what_uptime_alone_would_forget():
    harness = small()
    harness.init("a")
    harness.wall_ms -= DAY_MS
    harness.wait(2 * LIMIT_MS)
    assert ID in harness.machine.tables.transactions


def test_an_open_transaction_has_its_time_whatever_the_wall_clock_says_at_a_restart():
    harness = Harness(abort_interval_ms=1_000)
    harness.init("a", timeout_ms=60_000)
    assert harness.add("a") is ErrorCode.NONE
    harness.wait(20_000)
    harness.wall_ms += 8 * DAY_MS
    harness.restart()
    harness.wait(50_000)
    assert harness.transaction.state is TransactionState.ONGOING
    harness.wall_ms -= 20 * DAY_MS
    harness.restart()
    harness.wait(61_000)
    assert harness.transaction.state is TransactionState.PREPARE_ABORT


def test_restarts_do_not_keep_a_transaction_open_for_ever():
    harness = Harness(abort_interval_ms=1_000)
    harness.init("a", timeout_ms=300_000)
    harness.add("a")
    for _ in range(4):
        harness.wait(90_000)
        harness.restart()
    harness.wait(70_000)
    assert harness.transaction.state is TransactionState.PREPARE_ABORT


def test_nothing_is_written_while_nothing_is_known():
    harness = small()
    harness.wait(HOUR_MS)
    assert not harness.log


@settings(max_examples=40)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 90), st.integers(-9 * 24 * 60, 9 * 24 * 60), st.booleans()), min_size=1, max_size=6
    )
)
def test_an_id_is_forgotten_when_both_clocks_say_so(steps):
    harness = small()
    harness.init("a")
    known = harness.transaction
    for passed_minutes, jump_minutes, restarts in steps:
        harness.wait(passed_minutes * 60_000)
        harness.wall_ms += jump_minutes * 60_000
        if restarts:
            harness.restart()
        harness.wait(600_000)  # the next look
        if ID not in harness.machine.tables.transactions:
            assert harness.machine.tables.uptime.at(harness.now()) - known.updated_uptime_ms >= LIMIT_MS
            return
    up_ms = harness.machine.tables.uptime.at(harness.now())
    assert up_ms < LIMIT_MS + 600_000 or harness.wall_ms - known.updated_at_ms < LIMIT_MS + 600_000


def test_an_uptime_record_is_passed_over_by_other_readers():
    record = UptimeRecord(5)
    key, value = TransactionRecords().encode(record)
    assert (key.hex(), value.hex()) == ("2711", "00000000000000000005")
    assert TransactionRecords().decode(key, value) == record
    assert TransactionRecords().decode(key, None) is None
    with pytest.raises(RecordRefused):
        TransactionRecords().decode(key, b"\0\7" + (value or b"")[2:])


def test_a_record_of_a_release_without_uptimes_counts_from_the_upgrade_on():
    harness = small()
    harness.init("a")
    harness.log = [TransactionRecords().encode(TransactionRecord(ID, harness.transaction))]
    harness.wall_ms += 30 * DAY_MS
    harness.restart()
    harness.wait(LIMIT_MS - 600_000)
    assert ID in harness.machine.tables.transactions
    harness.wait(2 * 600_000)
    assert ID not in harness.machine.tables.transactions
    assert OWNER not in harness.machine.tables.owners

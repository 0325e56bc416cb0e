from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.coordinators.topic import partition_for
from headrace.core.coordination.machine import RecordRefused
from headrace.core.transactions.names import owner_of
from headrace.core.transactions.records import (
    PLAIN_VALUE_VERSION,
    Borrower,
    LeaderBoot,
    TransactionMetadata,
    TransactionRecord,
    TransactionRecords,
)
from headrace.core.transactions.settings import IDS_PER_SLICE, PARTITIONS_PER_TRANSACTION_MAX
from headrace.core.transactions.states import TransactionState
from headrace.model.errors import ErrorCode
from tests.core.manual_clock import Ticket
from tests.transactions.harness import ID, Harness

DAY_MS = 24 * 3_600_000

NUMBERS = st.integers(-1, 2**63 - 1)
EPOCHS = st.integers(-1, 2**15 - 1)
TRANSACTIONS = st.builds(
    TransactionMetadata,
    NUMBERS,
    EPOCHS,
    st.sampled_from(sorted(set(TransactionState) - {TransactionState.EMPTY})),
    st.integers(0, 2**31 - 1),
    st.frozensets(st.tuples(st.text(max_size=20), st.integers(0, 2**31 - 1)), max_size=6),
    NUMBERS,
    NUMBERS,
    previous_producer_id=NUMBERS,
    next_producer_id=NUMBERS,
    last_producer_epoch=EPOCHS,
    client_version=st.integers(0, 2),
    writer=st.none() | st.builds(Borrower, st.text(max_size=20), NUMBERS, NUMBERS),
    updated_uptime_ms=NUMBERS,
    started_uptime_ms=NUMBERS,
    boots=st.lists(st.builds(LeaderBoot, st.integers(0, 2**31 - 1), st.text(max_size=20)), max_size=3).map(tuple),
    metadata_offset=NUMBERS,
)


@given(transactional_id=st.text(max_size=30), transaction=TRANSACTIONS | st.none())
def test_records_come_back_as_written(transactional_id, transaction):
    record = TransactionRecord(transactional_id, transaction)
    assert TransactionRecords().decode(*TransactionRecords().encode(record)) == record


@given(transaction=TRANSACTIONS)
def test_the_older_value_leaves_out_what_it_has_no_room_for(transaction):
    plain = TransactionRecords(PLAIN_VALUE_VERSION)
    found = TransactionRecords().decode(*plain.encode(TransactionRecord(ID, transaction))).transaction
    assert found == TransactionMetadata(*transaction[:7])


def test_a_record_has_kafkas_bytes():
    transaction = TransactionMetadata(
        5, 3, TransactionState.ONGOING, 60_000, frozenset({("x", 1), ("x", 0)}), 7, 8, client_version=2
    )
    key, value = TransactionRecords().encode(TransactionRecord("t", transaction))
    assert key == bytes.fromhex("0000 0001 74".replace(" ", ""))
    assert value.hex(" ") == (
        "00 01 00 00 00 00 00 00 00 05 00 03 00 00 ea 60 01 "  # version, id, epoch, timeout, state
        "02 02 78 03 00 00 00 00 00 00 00 01 00 "  # one topic, two partitions
        "00 00 00 00 00 00 00 08 00 00 00 00 00 00 00 07 "  # last change, begin
        "01 02 02 00 02"  # the client's transaction.version
    )


@pytest.mark.parametrize("value", [b"", b"\0\7", b"\0\1abc", bytes(16) + b"\x09" + bytes(20)])
def test_a_record_that_makes_no_sense_is_refused(value):
    key, _ = TransactionRecords().encode(TransactionRecord("t", None))
    with pytest.raises(RecordRefused):
        TransactionRecords().decode(key, value)


def test_a_key_of_a_later_release_is_passed_over():
    assert TransactionRecords().decode(b"\0\1\0\1t", b"whatever") is None


@pytest.mark.slow
def test_an_unused_id_is_forgotten_an_open_transaction_never():
    harness = Harness(timeout_ms_max=2**31 - 1)
    harness.init("a")
    harness.init("b", transactional_id="u", timeout_ms=2**31 - 1)
    assert harness.add("b", transactional_id="u") is ErrorCode.NONE
    harness.wait(6 * DAY_MS)
    assert set(harness.machine.tables.transactions) == {"t", "u"}
    harness.wait(2 * DAY_MS)
    assert set(harness.machine.tables.transactions) == {"u"}
    assert harness.add("a") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert harness.init("a").error is ErrorCode.NONE


@pytest.mark.slow
def test_use_keeps_an_id():
    harness = Harness()
    harness.init("a")
    harness.wait(5 * DAY_MS)
    harness.transact("a")
    harness.wait(5 * DAY_MS)
    assert ID in harness.machine.tables.transactions


def test_many_ids_are_looked_at_over_several_turns():
    harness = Harness()
    for number in range(3 * IDS_PER_SLICE // 2):
        harness.machine.apply(TransactionRecord(f"t{number}", TransactionMetadata(number, 0, *_EMPTY)))
        harness.log.append(
            TransactionRecords().encode(TransactionRecord(f"t{number}", TransactionMetadata(number, 0, *_EMPTY)))
        )
    harness.monotonic_ms += 7 * DAY_MS
    records = harness.run(lambda machine, now: machine.expire(now)).records
    assert sum(isinstance(record, TransactionRecord) for record in records) == IDS_PER_SLICE
    harness.wait(1_000)
    assert not harness.machine.tables.transactions


_EMPTY: tuple[Any, ...] = (TransactionState.EMPTY, 1_000, frozenset(), -1, 0)


def test_a_transaction_has_a_limited_number_of_partitions():
    harness = Harness()
    harness.init("a")
    some = [("x", number) for number in range(PARTITIONS_PER_TRANSACTION_MAX)]
    assert harness.add("a", *some) is ErrorCode.NONE
    assert harness.add("a", ("y", 0)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert harness.end("a").error is ErrorCode.NONE


def test_a_wall_clock_that_jumps_ends_no_transaction():
    harness = Harness()
    harness.init("a", timeout_ms=60_000)
    harness.add("a")
    harness.wall_ms += 30 * DAY_MS
    harness.wait(50_000)
    assert harness.transaction.state is TransactionState.ONGOING
    harness.wall_ms -= 60 * DAY_MS
    harness.wait(20_000)
    assert harness.transaction.state is TransactionState.PREPARE_ABORT


def test_endings_that_were_lost_are_given_again():
    harness = Harness()
    harness.init("a")
    harness.add("a")
    harness.end("a")
    given = list(harness.endings)
    decision = harness.run(lambda machine, _now: machine.endings.next(Ticket("", "markers"), again=True))
    assert decision.responses[0].response == given
    harness.complete()
    assert harness.transaction.state is TransactionState.COMPLETE_COMMIT


def test_an_id_that_ends_while_it_is_to_be_given_again_is_not_given():
    harness = Harness()
    harness.init("a")
    harness.add("a")
    harness.end("a")
    harness.machine.endings._undelivered[ID] = False  # as if asked for again, with the answer still to come
    harness.complete()
    harness.endings.clear()
    harness.watch()
    assert not harness.endings


def test_members_of_one_owner_share_a_coordinator():
    assert owner_of("sink-1#7") == owner_of("sink-1#8") == "sink-1"
    assert owner_of("sink-1") == "sink-1"
    assert len({partition_for(owner_of(f"sink-1#{slot}"), 50) for slot in range(100)}) == 1


def test_what_is_known_of_an_id_can_be_looked_at():
    harness = Harness()
    harness.init("a")
    harness.add("a", ("x", 1), ("x", 0))
    described = harness.run(lambda machine, _now: machine.describe(ID, Ticket("", "describe"))).responses[0].response
    assert (described.error, described.state, described.partitions) == (ErrorCode.NONE, "Ongoing", (("x", 0), ("x", 1)))
    missing = harness.run(lambda machine, _now: machine.describe("u", Ticket("", "describe"))).responses[0].response
    assert missing.error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    listed = harness.run(lambda machine, _now: machine.list_transactions([ID, "u"], Ticket("", "list")))
    assert [(each.transactional_id, each.producer_id, each.state) for each in listed.responses[0].response] == [
        (ID, 1, TransactionState.ONGOING)
    ]

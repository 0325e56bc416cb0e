"""Three brokers and applications that use the shipped client, under faults."""

import os
import pathlib
import subprocess
import sys

import pytest

from headrace.client.types import ConsumerRecord
from headrace.model.ids import TopicPartition
from headrace.sim.checkers.violation import Violation
from headrace.sim.cluster.metadata_truth import ConfigRegister, ScratchTopic
from headrace.sim.cluster.records import RecordsHistory, TransactionOutcome
from headrace.sim.report import failure_text
from headrace.sim.run import run_seed

ROOT = pathlib.Path(__file__).parents[2]
BROKERS = 3
SEEDS = range(20)
MINUTES = 0.5
SHORT_MINUTES = 0.1
PLACE = TopicPartition("t", 0)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_brokers_promise_holds(seed):
    result = run_seed(seed, scenario="cluster", brokers=BROKERS, minutes=MINUTES)
    assert result.ok, failure_text(result)


@pytest.mark.slow
def test_the_trace_does_not_depend_on_the_hash_seed_of_the_interpreter():
    options = ["--seed", "3", "--scenario", "cluster", "--brokers", str(BROKERS), "--minutes", str(SHORT_MINUTES)]
    expected = run_seed(3, scenario="cluster", brokers=BROKERS, minutes=SHORT_MINUTES).last_line
    for hash_seed in ("1", "2"):
        answer = subprocess.run(
            [sys.executable, "-m", "headrace", "sim", *options],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )
        assert answer.stdout.splitlines()[-1] == expected


def shown(value, offset, place=PLACE):
    return ConsumerRecord(place.topic, place.partition, offset, 0, None, value, ())


@pytest.fixture
def history():
    history = RecordsHistory()
    for value in (b"a", b"b"):
        history.send(value, PLACE)
    return history


def test_a_reader_that_sees_another_value_is_noticed(history):
    history.acknowledge(b"a", 0)
    history.show(shown(b"a", 0), committed_only=False)
    with pytest.raises(Violation, match="an offset never changes its value"):
        history.show(shown(b"b", 0), committed_only=False)


def test_a_duplicate_is_noticed(history):
    history.acknowledge(b"a", 0)
    with pytest.raises(Violation, match="writes each record once"):
        history.show(shown(b"a", 1), committed_only=False)


def test_a_record_of_another_partition_is_noticed(history):
    with pytest.raises(Violation, match="only what was sent to that partition"):
        history.show(shown(b"a", 0, TopicPartition("t", 1)), committed_only=False)


def test_a_lost_record_is_noticed(history):
    history.acknowledge(b"a", 0)
    history.check_read(PLACE, {b"a"})
    with pytest.raises(Violation, match="acknowledged or shown records are readable"):
        history.check_read(PLACE, {b"b"})


@pytest.mark.parametrize(
    ("outcome", "allowed"),
    [
        (TransactionOutcome.COMMITTED, [2]),
        (TransactionOutcome.UNKNOWN, [0, 2]),
        (TransactionOutcome.ABORTED, [0]),
        (TransactionOutcome.OPEN, [0]),
    ],
)
def test_a_transaction_that_is_shown_in_part_or_against_its_outcome_is_noticed(outcome, allowed):
    values = [b"x", b"y"]
    for count in range(3):
        history = RecordsHistory()
        transaction = history.begin("transaction")
        for value in values:
            history.send(value, PLACE, transaction)
        transaction.outcome = outcome
        if count in allowed:
            history.check_committed(set(values[:count]))
        else:
            with pytest.raises(Violation, match="one outcome"):
                history.check_committed(set(values[:count]))


def test_an_aborted_record_is_noticed():
    history = RecordsHistory()
    transaction = history.begin("transaction")
    history.send(b"x", PLACE, transaction)
    history.show(shown(b"x", 0), committed_only=False)
    with pytest.raises(Violation, match="no aborted record"):
        history.show(shown(b"x", 0), committed_only=True)


def test_a_stale_config_is_noticed_unless_a_change_is_open():
    register = ConfigRegister("register")
    register.acknowledge(register.request())
    unanswered = register.request()
    register.acknowledge(register.request())
    register.check(unanswered, floor=3)
    register.check(1, floor=1)
    with pytest.raises(Violation, match="every later linearizable read"):
        register.check(1, floor=3)
    with pytest.raises(Violation, match="only values that were requested"):
        register.check(4, floor=3)


def test_a_stale_topic_is_noticed():
    scratch = ScratchTopic(1)
    scratch.check(is_shown=False)
    scratch.exists = True
    with pytest.raises(Violation, match="every later linearizable read"):
        scratch.check(is_shown=False)

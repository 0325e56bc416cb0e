"""librdkafka's tests as `make compat` runs them: the summary is read right, and lists, findings and page agree."""

import subprocess
from pathlib import Path

import pytest

from compat.cases import CASES
from compat.librdkafka.brokers import Witness
from compat.librdkafka.outcomes import (
    ALLOW_LIST,
    UNTOUCHED,
    Outcome,
    Pair,
    allowed,
    complaints,
    explained,
    stored,
)
from compat.librdkafka.run import witnessed
from compat.librdkafka.runner import FAILED, PASSED, SKIPPED, Verdict, verdicts
from compat.librdkafka.section import section
from compat.librdkafka.suite import SUITE, Batch, Entry, batches
from compat.report import page
from compat.sections import replaced

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
ENTRIES = (Entry(name="0990_one", checks="one"), Entry(name="0990_two", checks="two"))
SUMMARY = """some output | with bars |
TEST 20260101000000 (bare, scenario default) SUMMARY
#==================================================================#
| <MAIN>                                   |     PASSED |   2.001s |
| 0990_one                                 |     {one} |   1.500s | {why}
| 0990_two                                 |     PASSED |   0.500s |
#==================================================================#
"""


def batch() -> Batch:
    [found] = batches(ENTRIES)
    return found


def test_the_summary_gives_each_entry_its_verdict() -> None:
    found = verdicts(batch(), SUMMARY.format(one="FAILED", why="test_one():12: lost 3 messages"), "status 1")
    assert found == {
        "0990_one": Verdict(result=FAILED, detail="test_one():12: lost 3 messages"),
        "0990_two": Verdict(result=PASSED),
    }


def test_a_test_that_skips_has_not_passed() -> None:
    found = verdicts(batch(), SUMMARY.format(one="SKIPPED", why="not for this broker"), "")
    assert found["0990_one"] == Verdict(result=SKIPPED, detail="not for this broker")


def test_a_failure_is_reported_even_when_the_summary_is_lost() -> None:
    said = '### Test "0990_one (a_part:12)" failed at one.c:12:a_part() at some time: ###\nlost 3 messages\nmore'
    found = verdicts(batch(), said, "the runner died of SIGABRT")
    assert found == {
        "0990_one": Verdict(result=FAILED, detail="lost 3 messages"),
        "0990_two": Verdict(result=FAILED, detail="the runner died of SIGABRT"),
    }


@pytest.mark.parametrize(("said", "ending"), [("", "did not end within 5 s"), ("no summary", "")])
def test_a_run_without_a_summary_has_failed(said: str, ending: str) -> None:
    found = verdicts(batch(), said, ending)
    assert {verdict.result for verdict in found.values()} == {FAILED}
    assert all(verdict.detail for verdict in found.values())


def test_a_run_that_ends_badly_after_its_summary_has_failed() -> None:
    found = verdicts(batch(), SUMMARY.format(one="PASSED", why=""), "the runner died of SIGABRT")
    assert found["0990_one"] == Verdict(result=FAILED, detail="the runner died of SIGABRT after the test")


@pytest.mark.parametrize(
    ("witness", "result"),
    [
        (Witness(apis=("Produce",)), PASSED),
        (Witness(apis=()), UNTOUCHED),
        (Witness(apis=("Produce",), trouble="2 requests failed inside the broker"), FAILED),
    ],
)
def test_the_broker_has_the_last_word(witness: Witness, result: str) -> None:
    assert witnessed(Verdict(result=PASSED), witness, 1).result == result


def test_the_runner_is_started_once_for_what_it_cannot_tell_apart() -> None:
    entries = [
        Entry(name="0990_remote", checks="a"),
        Entry(name="0990_mock", checks="b", local=True),
        Entry(name="0990_local", checks="c", local=True),
        Entry(name="0990_remote", checks="a", protocol="consumer"),
    ]
    assert sorted(found.title for found in batches(entries)) == [
        "0990_mock, 0990_local",
        "0990_remote",
        "0990_remote (consumer)",
    ]


def test_a_test_that_leaves_the_allow_list_is_complained_of() -> None:
    must_pass = allowed()[0]
    left = {must_pass: Pair(headrace=Outcome(result=FAILED, detail="lost"))}
    [complaint] = complaints(left)
    assert must_pass in complaint
    assert not list(complaints({must_pass: Pair(headrace=Outcome(result=PASSED))}))


def test_a_failure_without_a_finding_is_complained_of() -> None:
    [complaint] = complaints({"0990_one": Pair(headrace=Outcome(result=FAILED, detail="lost"))})
    assert "FINDINGS.md" in complaint


def test_a_run_of_the_clients_keeps_the_outcomes_of_these_tests() -> None:
    """And a run of these tests alone leaves the rest of the page as it was."""
    before = page(CASES, [], {}, {}, [section({})])
    new = section({"0001_multiobj": Pair(headrace=Outcome(result=PASSED, tries=2), kafka=Outcome(result=FAILED))})
    assert page(CASES, [], {}, {}, [new]) == replaced(before, new)
    assert "| 0001_multiobj |" in new
    assert "| yes, try 2 | **no** |" in new


# The records


def test_every_test_must_pass_or_has_its_finding() -> None:
    keys = [entry.key for entry in SUITE]
    assert len(set(keys)) == len(keys)
    assert sorted({*allowed(), *explained()}) == sorted(keys)


def test_the_allow_list_is_what_passes() -> None:
    passing = [key for key, pair in stored().items() if pair.headrace is not None and pair.headrace.result == PASSED]
    assert sorted(allowed()) == sorted(passing)


def test_the_allow_list_has_only_grown() -> None:
    """By the history that a checkout has; without one there is nothing to compare with."""
    git = ["git", "log", "--format=", "--unified=0", "--patch", "--", str(ALLOW_LIST)]
    history = subprocess.run(git, cwd=ALLOW_LIST.parent, capture_output=True, text=True).stdout.splitlines()
    once = {line[1:] for line in history if line[:1] in "+-" and line[1:5].isdecimal()}
    assert once <= set(allowed())


def test_the_page_shows_the_outcomes() -> None:
    shown = PAGE.read_text()
    assert replaced(shown, section(stored())) == shown

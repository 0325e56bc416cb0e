"""The record of the long runs: nothing is counted twice, nothing that failed is counted, and the page tells it."""

import multiprocessing
import signal
import subprocess
import sys
import time

import pytest

from headrace.cli.termination import held_back
from tests.process_groups import running, wait_until_gone
from tests.sim.known_bad import KNOWN_BAD
from tools.chaos import __main__ as chaos
from tools.chaos import page, stops
from tools.chaos.campaigns import CONTROLLER_KILLS, SIMULATORS, campaigns, fault_name
from tools.chaos.record import ROOT, Failure, FileRange, Outcome, Record

pytestmark = pytest.mark.slow

SIMULATOR = SIMULATORS["log"]
PASSED = Outcome({"batches": 3, "too easy": [1]})
ENDED_AT_ONCE = """
import os, runpy, signal, sys, threading

def start_when_told_to_end(thread, start=threading.Thread.start):
    os.kill(os.getpid(), signal.SIGTERM)
    start(thread)

threading.Thread.start = start_when_told_to_end
sys.argv = ["chaos", "simulator", "--jobs", "2", "--from-scratch"]
runpy.run_module("tools.chaos", run_name="__main__", alter_sys=True)
"""
RECORDED_ELSEWHERE = """
import pathlib, runpy, sys
from tools.chaos import page, record

record.Record.__init__.__defaults__ = (pathlib.Path(sys.argv.pop(1)),)
page.write = lambda record: None
runpy.run_module("tools.chaos", run_name="__main__", alter_sys=True)
"""
END_S_MAX = 60
FAILED = Outcome({}, (Failure("offset 3 is gone", "headrace sim --seed 25"),))


def record_of(path):
    return Record(path / "record.json")


def test_a_run_that_was_cut_short_continues_where_it_was(tmp_path):
    record = record_of(tmp_path)
    progress = record.of("some")
    first, second = progress.take(20, 50), progress.take(20, 50)
    assert (first, second) == (FileRange(0, 20), FileRange(20, 20))
    progress.ended(first, 1.5, PASSED, "abc")
    record.save()
    again = record_of(tmp_path).of("some")
    assert (again.done, again.open) == (20, [second])
    again.ended(second, 1.5, PASSED, "def")
    assert again.take(20, 50) == FileRange(40, 10)
    assert again.take(20, 50) is None
    assert (again.done, again.number("batches"), again.values("too easy")) == (40, 6, [1, 1])
    assert (again.seconds, again.codes) == (3.0, ["abc", "def"])


def test_what_failed_is_not_counted_and_is_run_again(tmp_path):
    record = record_of(tmp_path)
    campaign = campaigns()[0]
    part = record.of(campaign.name).take(20, 50)
    record.of(campaign.name).ended(part, 1.0, FAILED, "abc")
    record.save()
    progress = record_of(tmp_path).of(campaign.name)
    assert progress.done == 0
    assert progress.failures == {"0": list(FAILED.failures)}
    assert next(chaos.slices([(0, campaign)], record_of(tmp_path))) == (0, campaign, part)
    progress.ended(part, 1.0, PASSED, "def")
    assert (progress.done, progress.failures) == (20, {})


def test_the_page_has_a_place_for_everything(tmp_path):
    copy = tmp_path / "reliability.md"
    copy.write_text(page.PAGE.read_text())
    record = record_of(tmp_path)
    progress = record.of(SIMULATOR)
    progress.ended(progress.take(20, 50), 60.0, Outcome({"progress": 1_234_567}), "abc")
    page.write(record, copy)
    assert "20 seeds on commit abc" in copy.read_text()
    assert "1,234,567 batches stored" in copy.read_text()


def test_kills_of_controllers_are_reported_with_their_shares(tmp_path):
    copy = tmp_path / "reliability.md"
    copy.write_text(page.PAGE.read_text())
    record = record_of(tmp_path)
    progress = record.of(CONTROLLER_KILLS)
    times = {"created again ms": list(range(100, 0, -1)), "longest gap ms": [7] * 100}
    progress.ended(progress.take(100, 100), 60.0, Outcome({"kills": 100, "acknowledged": 12_345, **times}), "abc")
    page.write(record, copy)
    (told,) = (line for line in copy.read_text().splitlines() if "CreateTopics works again" in line)
    assert "after 50 ms (p50), 95 ms (p95), 100 ms (most)" in told
    assert "| 100 kills | 12,345 records | on commit abc |" in told


def test_a_fault_that_few_seeds_met_fails_the_run(tmp_path):
    record = record_of(tmp_path)
    progress = record.of(SIMULATOR)
    progress.ended(progress.take(100, 100), 1.0, Outcome({"seeds with kill -9": 5, "seeds with pause": 4}), "abc")
    rare = page.rare(record)
    assert "pause in log" in rare
    assert "kill -9 in log" not in rare


def test_workers_end_with_a_run_that_is_stopped():
    worker = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    worker.start()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit), chaos._workers_that_end_with_it():
        signal.raise_signal(signal.SIGTERM)
    worker.join(60)
    assert worker.exitcode == -signal.SIGKILL
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_run_is_started_before_it_is_ended():
    """A worker was there, and the thread that looks after it was not: the end of the run failed on that."""
    with running(sys.executable, "-c", ENDED_AT_ONCE, folder=ROOT) as process:
        process.communicate(timeout=END_S_MAX)
        assert process.returncode == 128 + signal.SIGTERM
        wait_until_gone(process.pid)


def test_the_command_runs_a_campaign_in_its_workers(tmp_path):
    name = "known faults in compaction: drop_tombstones_at_once"
    command = [sys.executable, "-c", RECORDED_ELSEWHERE, str(tmp_path / "record.json"), name]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=END_S_MAX)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"{name}: 5 of 5 tries, 0 failed" in ended.stdout


def test_workers_take_signals_and_so_do_brokers_that_they_start():
    with held_back(stops.STOPS):
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= set(stops.STOPS)
        stops.take()
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & set(stops.STOPS)


def test_campaigns_are_chosen_by_name_or_by_its_first_words():
    known = ["simulator", "simulator of groups", "fuzz a", "fuzz b", "fuzzy"]
    assert chaos.named("simulator", known) == ["simulator"]
    assert chaos.named("fuzz", known) == ["fuzz a", "fuzz b"]
    assert chaos.named("fuz", known) == []


def test_known_faults_are_counted_by_their_names(tmp_path):
    """One that is added in the middle of the list moves none of the others."""
    scenario, put_in = KNOWN_BAD[3]
    record = record_of(tmp_path)
    progress = record.of(fault_name(scenario, put_in))
    progress.ended(progress.take(1, 5), 1.0, Outcome({"seeds": [7]}), "abc")
    copy = tmp_path / "reliability.md"
    copy.write_text(page.PAGE.read_text())
    page.write(record, copy)
    told = next(line for line in copy.read_text().splitlines() if put_in.__name__.replace("_", " ") in line)
    assert told.split(" | ")[1:] == [scenario, "1", "7", "7", "on commit abc |"]

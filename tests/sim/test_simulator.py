"""The simulator itself: the same seed is the same run, and a failure says how to repeat it."""

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.checkers.violation import Violation
from headrace.sim.nemesis import MET
from headrace.sim.node_run import FRAME_CUT
from headrace.sim.report import SEEDS_TO_JUDGE_MIN, SeedsReport
from headrace.sim.results import SeedResult
from headrace.sim.run import SINGLE_SCENARIOS, run_seed
from headrace.sim.scenarios.log import LogScenario
from tests.sim.known_bad import serve_above_the_high_watermark

ROOT = pathlib.Path(__file__).parents[2]
SHORT_MINUTES = 0.3
DEEDS_MIN = LogScenario.progress_min


@pytest.mark.usefixtures("virtual_world_only")
def test_the_same_seed_gives_the_same_trace_and_another_seed_another():
    hashes = [run_seed(seed, minutes=SHORT_MINUTES).trace_hash for seed in (1, 2, 1)]
    assert hashes[0] == hashes[2] != hashes[1]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [scenario.name for scenario in SINGLE_SCENARIOS])
def test_the_trace_does_not_depend_on_the_hash_seed_of_the_interpreter(scenario):
    options = ["--seed", "0x3", "--scenario", scenario, "--minutes", str(SHORT_MINUTES)]
    command = [sys.executable, "-m", "headrace", "sim", *options]
    expected = run_seed(3, scenario=scenario, minutes=SHORT_MINUTES).last_line
    for hash_seed in ("1", "2"):
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )
        assert answer.stdout.splitlines()[-1] == expected


def test_every_event_is_shown_and_counted():
    shown: list[Any] = []
    result = run_seed(4, minutes=SHORT_MINUTES, show=shown.append)
    assert len(shown) == result.events
    assert "machine node boot 1" in shown
    assert {fault for fault, times in result.met.items() if times} <= set(MET)


def test_a_failure_names_the_seed_the_events_the_promise_and_the_command(monkeypatch):
    serve_above_the_high_watermark(monkeypatch)
    answer = CliRunner().invoke(cli, ["sim", "--seed", "0", "--minutes", "1"])
    assert answer.exit_code == 1
    lines = answer.output.splitlines()
    assert lines[0] == "seed 0 failed; the last 50 events:"
    assert len([line for line in lines if line.startswith("  ")]) == 50
    assert any(line.startswith("invariant: a reader never reads above the high watermark") for line in lines)
    assert "again: headrace sim --seed 0 --minutes 1 --trace" in lines
    assert lines[-1].startswith("seed 0 trace ")
    assert " FAILED invariant: a reader never reads above the high watermark" in lines[-1]


def test_a_crash_of_the_node_is_a_failure_too(monkeypatch):
    def crash(history, *arguments):
        raise KeyError("a fault")

    monkeypatch.setattr(PartitionHistory, "starts_at", crash)
    result = run_seed(0, minutes=SHORT_MINUTES)
    assert result.violation.startswith("the node does not crash: KeyError: 'a fault' in crash")


def test_one_seed_as_json():
    answer = CliRunner().invoke(cli, ["sim", "--seed", "5", "--minutes", "0.1", "--json"])
    assert answer.exit_code == 0
    told = json.loads(answer.output)
    assert (told["seed"], told["ok"], told["invariant"]) == (5, True, None)
    assert told["again"] == "headrace sim --seed 5 --minutes 0.1 --trace"


def test_many_seeds_end_with_a_table_of_the_faults_they_met():
    answer = CliRunner().invoke(cli, ["sim", "--seeds", "3..4", "--minutes", "0.1", "--jobs", "1"])
    assert answer.exit_code == 0, answer.output
    table = [line.split("  ")[0] for line in answer.output.splitlines()]
    assert set(MET) <= set(table)
    assert answer.output.splitlines()[-1].startswith("2 seeds, 0 failed, 2 too easy to count: 0.2 virtual minutes")


def test_a_run_of_machines_says_the_command_that_repeats_it():
    answer = CliRunner().invoke(cli, ["sim", "--seed", "5", "--level", "machines", "--brokers", "5", "--json"])
    assert answer.exit_code == 0
    told = json.loads(answer.output)
    assert (told["scenario"], told["brokers"], told["ok"]) == ("machines", 5, True)
    assert told["again"] == "headrace sim --seed 5 --level machines --brokers 5 --minutes 0.07 --trace"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seed", "x"],
        ["--seeds", "5"],
        ["--seeds", "5..4"],
        ["--seed", "1", "--seeds", "1..2"],
        ["--brokers", "0"],
        ["--brokers", "3", "--scenario", "groups"],
        ["--level", "machines", "--scenario", "groups"],
    ],
)
def test_what_is_no_seed_is_refused(arguments):
    assert CliRunner().invoke(cli, ["sim", *arguments]).exit_code == 2


def result(seed, *, progress=DEEDS_MIN, restarts=2, met=()):
    return SeedResult(
        seed=seed,
        scenario=LogScenario,
        minutes=1.0,
        trace_hash="",
        events=0,
        steps=0,
        progress=progress,
        restarts=restarts,
        met={fault: int(fault in met) for fault in MET},
        must_meet=(FRAME_CUT, *LogScenario().must_meet()),
    )


def test_a_seed_counts_only_if_enough_happened():
    hard = ("unsynced page torn", FRAME_CUT)
    assert result(1, met=hard).counts
    assert not result(1, met=hard, progress=DEEDS_MIN - 1).counts
    assert not result(1, met=hard, restarts=1).counts
    for one in hard:
        assert not result(1, met=[one]).counts


def test_a_fault_that_few_seeds_meet_fails_the_whole():
    seeds = 2 * SEEDS_TO_JUDGE_MIN
    often = SeedsReport([result(seed, met=MET if seed % 20 == 0 else ()) for seed in range(seeds)])
    assert often.rare() == []
    assert often.ok
    seldom = SeedsReport([result(seed, met=MET[1:] if seed % 20 == 0 else ()) for seed in range(seeds)])
    assert seldom.rare() == [MET[0]]
    assert not seldom.ok
    assert SeedsReport([result(1)]).rare() == []


def test_a_violation_says_the_promise_first():
    assert str(Violation("nothing is lost", "offset 3 is")) == "nothing is lost: offset 3 is"

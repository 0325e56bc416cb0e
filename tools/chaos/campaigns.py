"""The campaigns of `make chaos`, each cut into slices that can be run by themselves and in any process."""

import json
import shlex
import subprocess
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from headrace.sim.report import failure_text
from headrace.sim.run import run_seed
from headrace.testing import EmbeddedCluster
from tests.cluster_process import replica_faults
from tests.cluster_process.controller_kills import kill_active_controller
from tests.disks import chaos as processes
from tests.raft.known_bad import KNOWN_BAD as KNOWN_BAD_MACHINES
from tests.sim.known_bad import KNOWN_BAD, is_noticed
from tests.sim.known_bad_clusters import KNOWN_BAD_CLUSTERS
from tests.sim.known_bad_replicas import KNOWN_BAD_REPLICAS
from tools.chaos.record import ROOT, Failure, FileRange, Outcome
from tools.fuzz.campaign import attack, bounded_address_space
from tools.fuzz.catalog import DECODES_OF_FIRST, DECODES_OF_OTHERS, FIRST, targets

SIMULATORS = {
    "log": "simulator",
    "groups": "simulator of groups",
    "transactions": "simulator of transactions",
    "batch-commits": "simulator of batch commits",
    "compaction": "simulator of compaction",
    "cluster": "simulator of clusters",
    "machines": "simulator of machines",
}
"""By the scenario."""
SWEEP = "failpoint sweep"
KILLS = "random kills"
PAUSES = "pauses"
LONG_PAUSES = "long pauses"
CONTROLLER_KILLS = "controller kills"
SPARK_KILLS = "Spark kills"
SPARK_OUTAGES = "Spark outages"

SEEDS = {
    "log": 5_000,
    "groups": 2_000,
    "transactions": 2_000,
    "batch-commits": 2_000,
    "compaction": 2_000,
    "cluster": 1_000,
    "machines": 20_000,
}
SEEDS_OF_A_SLICE = {"cluster": 5, "machines": 200}
SEEDS_OF_OTHER_SLICES = 20
KNOWN_FAULTS = [
    *KNOWN_BAD,
    *(("cluster", put_in) for put_in in (*KNOWN_BAD_CLUSTERS, *KNOWN_BAD_REPLICAS)),
    *(("machines", put_in) for put_in in KNOWN_BAD_MACHINES),
]
"""Scenarios and the known faults that they notice."""
KnownFault = Callable[[pytest.MonkeyPatch], None]
"""Puts it in."""

TRIES = 5
"""Each known fault is put in this often, beginning at other seeds."""
SEEDS_OF_A_TRY = 1_000
"""A fault that needs two rare things at once is met by one seed in a hundred or two."""
SWEEP_PARTS = 20
SWEEP_CALLS_OF_A_POINT = 5
KILLS_GOAL = 1_000
PAUSES_GOAL, PAUSE_S = 20, (5.0, 10.0)
LONG_PAUSES_GOAL, LONG_PAUSE_S = 5, (60.0, 65.0)
"""Number of pauses, and the shortest and the longest of them."""
CONTROLLER_KILLS_GOAL, CONTROLLER_KILLS_OF_A_CLUSTER = 100, 10
REPLICA_FAULTS = {
    "kills of leaders": (200, 10),
    "kills of every broker": (20, 5),
    "pauses of leaders": (50, 5),
    "cuts": (30, 5),
    "one-way cuts": (30, 5),
    "full disks": (10, 5),
    "failing syncs": (20, 5),
    "bit flips": (20, 5),
}
"""Goal and slice of each; the names are those of the faults."""
REPLICA_SLICE_S_MAX = 3_600
SAID_CHARACTERS_MAX = 4_000
SPARK_KILLS_GOAL, SPARK_KILLS_OF_A_QUERY = 100, 10
SPARK_OUTAGES_GOAL, OUTAGE_S = 5, 30.0
CHECK_EVERY = 10
FUZZ_SLICE = 20_000
FUZZ_SEED_FIRST = 1_000
"""Above the seeds of runs that were counted by hand: inputs of one seed are counted once."""

TOGETHER = {
    "Produce": ("produce-request", "produce-scan"),
    "Fetch": ("fetch-request", "fetch-scan"),
}
"""Read by a generated decoder and by a tuned scanner: their inputs count together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    name: str
    unit: str
    goal: int
    slice: int
    """Number of seeds per slice; a slice that was begun and not finished is begun again."""
    run: Callable[[int, int], Outcome]
    """Of the first and how many."""
    lacks: Callable[[], str] = lambda: ""
    """Returns why it cannot run on this machine; empty if it can."""


def campaigns() -> list[Campaign]:
    return [
        *(
            Campaign(
                name=name,
                unit="seeds",
                goal=SEEDS[scenario],
                slice=SEEDS_OF_A_SLICE.get(scenario, SEEDS_OF_OTHER_SLICES),
                run=partial(simulate, scenario),
            )
            for scenario, name in SIMULATORS.items()
        ),
        *(
            Campaign(
                name=fault_name(scenario, fault),
                unit="tries",
                goal=TRIES,
                slice=1,
                run=partial(notice, scenario, fault),
            )
            for scenario, fault in KNOWN_FAULTS
        ),
        Campaign(name=KILLS, unit="kills", goal=KILLS_GOAL, slice=50, run=kill),
        Campaign(name=SWEEP, unit="parts", goal=SWEEP_PARTS, slice=1, run=sweep),
        Campaign(name=PAUSES, unit="pauses", goal=PAUSES_GOAL, slice=5, run=partial(pause, PAUSE_S)),
        Campaign(
            name=CONTROLLER_KILLS,
            unit="kills",
            goal=CONTROLLER_KILLS_GOAL,
            slice=CONTROLLER_KILLS_OF_A_CLUSTER,
            run=kill_controllers,
        ),
        *(
            Campaign(
                name=replica_campaign(fault),
                unit="faults",
                goal=goal,
                slice=size,
                run=partial(fail_replicas, fault),
                lacks=replica_faults.FAULTS[fault].lacks,
            )
            for fault, (goal, size) in REPLICA_FAULTS.items()
        ),
        Campaign(name=LONG_PAUSES, unit="pauses", goal=LONG_PAUSES_GOAL, slice=1, run=partial(pause, LONG_PAUSE_S)),
        Campaign(
            name=SPARK_KILLS, unit="kills", goal=SPARK_KILLS_GOAL, slice=SPARK_KILLS_OF_A_QUERY, run=kill_around_spark
        ),
        Campaign(name=SPARK_OUTAGES, unit="outages", goal=SPARK_OUTAGES_GOAL, slice=5, run=leave_spark_alone),
        *(
            Campaign(name=fuzz_name(name), unit="inputs", goal=goal, slice=FUZZ_SLICE, run=partial(fuzz, name))
            for name, goal in fuzz_goals().items()
        ),
    ]


def run_slice(number: int, part: FileRange) -> tuple[float, Outcome]:
    """For a process of a pool, which knows campaigns by their place: the seconds it took, and what it brought."""
    began = time.monotonic()
    outcome = campaigns()[number].run(part.first, part.size)
    return time.monotonic() - began, outcome


def fuzz_name(target: str) -> str:
    return f"fuzz {target}"


def fault_name(scenario: str, put_in: KnownFault) -> str:
    return f"known faults in {scenario}: {put_in.__name__}"


def replica_campaign(fault: str) -> str:
    return f"replicas: {fault}"


def fuzz_goals() -> dict[str, int]:
    """By target, or by the name of two that are counted together."""
    single = [name for name in targets() if not any(name in names for names in TOGETHER.values())]
    goals = dict.fromkeys(TOGETHER, DECODES_OF_FIRST)
    return goals | {name: DECODES_OF_FIRST if name in FIRST else DECODES_OF_OTHERS for name in single}


# --- the simulator ---------------------------------------------------------------------------------------------------


def simulate(scenario: str, first: int, count: int) -> Outcome:
    figures: Counter[str] = Counter()
    failures = []
    uncounted = []
    for seed in range(first, first + count):
        result = run_seed(seed, scenario=scenario)
        figures.update(starts=result.restarts, progress=result.progress, milliminutes=int(1_000 * result.minutes))
        for fault, times in result.met.items():
            figures.update({f"seeds with {fault}": int(times > 0), f"times {fault}": times})
        if not result.ok:
            failures.append(Failure(failure_text(result), result.command))
        elif not result.counts:
            uncounted.append(seed)
    return Outcome({**figures, "too easy": uncounted}, tuple(failures))


def notice(scenario: str, put_in: KnownFault, first: int, count: int) -> Outcome:
    """Return how many seeds it takes until a known fault is noticed."""
    seeds = [_seeds_to_notice(scenario, put_in, SEEDS_OF_A_TRY * number) for number in range(first, first + count)]
    unnoticed = Failure(f"{put_in.__name__} is not noticed", "make test ARGS=tests/sim/test_known_bad.py")
    return Outcome({"seeds": seeds}, () if all(seeds) else (unnoticed,))


def _seeds_to_notice(scenario: str, put_in: KnownFault, first: int) -> int:
    """0 if none of many does."""
    with pytest.MonkeyPatch.context() as patch:
        put_in(patch)
        for count in range(SEEDS_OF_A_TRY):
            if is_noticed(first + count, scenario):
                return count + 1
    return 0


# --- broker processes ------------------------------------------------------------------------------------------------


def kill(first: int, count: int) -> Outcome:
    return _with_folder(
        lambda folder: dict(
            zip(
                ("kills", "acknowledged"),
                processes.random_kills(folder, seed=first, count=count, check_every=CHECK_EVERY),
                strict=True,
            )
        ),
        f"python -m tests.disks.chaos kills --seed {first} --kills {count}",
    )


def sweep(first: int, count: int) -> Outcome:
    def run(folder: str) -> dict[str, int | list[str]]:
        points, ends, missed, acknowledged = processes.sweep(
            folder,
            seed=first,
            numbers_max=SWEEP_CALLS_OF_A_POINT,
            check_every=5,
            part=(first, SWEEP_PARTS),
        )
        return {"points": sorted(points), "ends": ends, "not met": len(missed), "acknowledged": acknowledged}

    assert count == 1, "a slice of the sweep is one part of it"
    return _with_folder(run, f"python -m tests.disks.chaos sweep --seed {first} --part {first}/{SWEEP_PARTS}")


def pause(seconds: tuple[float, float], first: int, count: int) -> Outcome:
    def run(folder: str) -> dict[str, int]:
        pauses, acknowledged = processes.pauses(folder, seed=first, count=count, seconds=seconds)
        return {"pauses": pauses, "acknowledged": acknowledged}

    how_long = "{:g}-{:g}".format(*seconds)
    return _with_folder(run, f"python -m tests.disks.chaos pauses --seed {first} --pauses {count} --pause-s {how_long}")


def kill_controllers(_first: int, count: int) -> Outcome:
    """Three broker processes whose active controller is killed again and again while other leaders get records."""

    def run(folder: str) -> dict[str, int | list[int]]:
        with EmbeddedCluster(brokers=3, config={"auto.create.topics.enable": "false"}, data_dir=folder) as cluster:
            kills = [kill_active_controller(cluster) for _ in range(count)]
        return {
            "kills": count,
            "acknowledged": sum(kill.acknowledged for kill in kills),
            "created again ms": [round(1_000 * kill.created_again_s) for kill in kills],
            "longest gap ms": [round(1_000 * kill.longest_gap_s) for kill in kills],
        }

    return _with_folder(run, "make test ARGS='tests/cluster_process/test_failures.py -k controller'")


def fail_replicas(fault: str, first: int, count: int) -> Outcome:
    """Three brokers with three replicas under the load of stock clients, in a process of their own."""
    command = replica_faults.command(fault, count=count, seed=first)
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=REPLICA_SLICE_S_MAX, check=False)
    if ran.returncode:
        return Outcome({}, (Failure(ran.stderr[-SAID_CHARACTERS_MAX:], shlex.join(command)),))
    return Outcome(json.loads(ran.stdout))


def kill_around_spark(first: int, count: int) -> Outcome:
    """One query and a kill in each of its micro-batches; over all queries every point is met equally often."""
    from tests.spark.kills import campaign  # Spark and Arrow are for this alone

    chosen = campaign.drawn(campaign.SEED, first, count)

    def run(folder: str) -> dict[str, int]:
        campaign.kills(Path(folder), chosen)
        victims = Counter(victim for victim, _point in chosen)
        return {"kills": count, "rows": (count + 1) * campaign.ROWS_PER_BATCH, **victims}

    return _with_folder(run, f"python -m tests.spark.kills.campaign --first {first} --kills {count}")


def leave_spark_alone(_first: int, count: int) -> Outcome:
    """The broker of a query from topic to topic is killed, and comes back after a while."""
    from headrace.spark import session
    from tests.spark.kills import outages

    def run(folder: str) -> dict[str, int]:
        spark = session("headrace-outages", master="local[2]", conf={"spark.ui.enabled": "false"})
        try:
            sent = outages.copy_through_outages(spark, Path(folder), outages=count, seconds=OUTAGE_S)
        finally:
            spark.stop()
        return {"outages": count, "rows": sent}

    return _with_folder(run, f"python -m tests.spark.kills.outages --outages {count} --seconds {OUTAGE_S:g}")


def _with_folder(run: Callable[[str], dict], again: str) -> Outcome:
    try:
        with tempfile.TemporaryDirectory(prefix="headrace-chaos-") as folder:
            return Outcome(run(folder))
    except Exception:
        return Outcome({}, (Failure(traceback.format_exc(), again),))


# --- fuzzing ---------------------------------------------------------------------------------------------------------


def fuzz(name: str, first: int, count: int) -> Outcome:
    seed = FUZZ_SEED_FIRST + first
    names = TOGETHER.get(name, (name,))
    target = targets()[names[first // FUZZ_SLICE % len(names)]]
    with bounded_address_space():
        outcome = attack(target, decodes=count, seed=seed)
    failures = tuple(
        Failure(kind, f"echo {data.hex()} >> tests/fuzz/findings/{target.name}.hex") for data, kind in outcome.findings
    )
    return Outcome({"accepted": outcome.accepted}, failures)

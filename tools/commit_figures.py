"""Compare the broker CPU of two commits under plain produce, fetch and offset commits, in alternating rounds.

    python -m tools.commit_figures OLD [NEW] [--rounds 20] [--seconds 2] [--only produce] [--change-max 2]

Without NEW, the second broker runs the source of this working tree. The load, the Python and the packages are the same
for both; each commit has its own `src` with compiled helpers. The change is the median of new / old within one round,
and its 95 % interval comes from resampled rounds: other work on the machine affects both brokers of a round alike. With
--change-max the exit status is 1 if a figure grew by more than this percentage.
"""

import argparse
import io
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple

from headrace.bench import processes
from headrace.bench.brokers import SHARED_SETTINGS, BrokerProcess, HeadraceBroker
from headrace.bench.consume import REPLAY, ConsumeRounds, SmallFetchRounds
from headrace.bench.figures import FIGURES, Measurement, Round
from headrace.bench.loads import LARGE, PIPELINED, SINGLE
from headrace.bench.machine import bench_folder
from headrace.bench.produce import ProduceRounds
from headrace.bench.replay import ReplayClient
from headrace.bench.rounds import Measured, settle_disk
from tools.bench.commits import CommitRounds

FETCHED_BYTES = 1_000_000_000
SMALL_FETCHES = 60_000
RESAMPLES = 10_000
INTERVAL_SHARE = 0.95
FIGURES_SHOWN = ("cpu_us_per_request", "cpu_seconds_per_gigabyte")
ROOT = Path(__file__).parents[1]


class CommitBroker(HeadraceBroker):
    """A broker that runs the source in a folder."""

    def __init__(self, name: str, folder: Path, source: Path) -> None:
        super().__init__(folder)
        self.name = name
        self._source = source

    def _spawn(self) -> "subprocess.Popen[bytes]":
        settings = [word for name, text in SHARED_SETTINGS.items() for word in ("--set", f"{name}={text}")]
        command = processes.python_command("-m", "headrace", "broker", "--listen", "127.0.0.1:0")
        return processes.start(
            ["env", f"PYTHONPATH={self._source}", *command, "--data-dir", str(self.folder), *settings],
            messages=self.messages,
            stdout=subprocess.PIPE,
        )


def source_of(commit: str, folder: Path, *files: str) -> Path:
    """Extract `src` and other files of a commit, and build its compiled helpers as an installation does; its `src`."""
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "src", "tools/build_native.py", *files],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    subprocess.run([sys.executable, str(folder / "tools/build_native.py")], check=True, stdout=subprocess.DEVNULL)
    return folder / "src"


class Change(NamedTuple):
    """The relative change from old to new, with the bounds of its 95 % interval; 0.01 is 1 % more."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.middle:+.1f} % ({100 * self.low:+.1f} to {100 * self.high:+.1f} %)"


def change_of(old: Sequence[float], new: Sequence[float]) -> Change:
    """Return the median of the changes within one round, with an interval from resampled rounds."""
    changes = [after / before - 1 for before, after in zip(old, new, strict=True)]
    chance = Random(0)  # the same rounds always give the same interval
    medians = sorted(median(chance.choices(changes, k=len(changes))) for _ in range(RESAMPLES))
    beyond = round(RESAMPLES * (1 - INTERVAL_SHARE) / 2)
    return Change(median(changes), medians[beyond], medians[-1 - beyond])


def loads(client: ReplayClient, seconds: float) -> dict[str, Callable[[BrokerProcess], Measured]]:
    made: dict[str, Callable[[BrokerProcess], Measured]] = {}
    for number, load in enumerate((SINGLE, PIPELINED, LARGE)):
        timed = replace(load, seconds=seconds)
        made[f"produce, {load.name}"] = partial(ProduceRounds, client=client, load=timed, topic=f"produce-{number}")
    made["fetch, 32 x 1, one batch of 100 B each"] = partial(
        SmallFetchRounds, client=client, topic="small", fetches=SMALL_FETCHES
    )
    made["fetch, 4 x 1, 1 MB each"] = partial(
        ConsumeRounds, client=client, topic="large", total_bytes=FETCHED_BYTES, partitions=4, by=REPLAY
    )
    made["offset commits, 32 x 1"] = partial(
        CommitRounds, client=client, topic="commits", connections=32, depth=1, seconds=seconds
    )
    return made


def in_changing_turns(load: str, subjects: dict[str, Measured], *, rounds: int) -> list[Measurement]:
    """Measure A B, B A and so on: to be the first or the second makes more difference than such similar brokers do."""
    found: dict[str, list[Round]] = {name: [] for name in subjects}
    for number in range(rounds):
        for name in list(subjects)[:: -1 if number % 2 else 1]:
            settle_disk()
            found[name].append(subjects[name]())
    return [Measurement(load=load, subject=name, client="", rounds=tuple(each)) for name, each in found.items()]


def print_rows(found: list[Measurement]) -> list[Change]:
    old, new = found
    changes = []
    for name in FIGURES_SHOWN:
        values = [each.values(name) for each in (old, new)]
        if not values[0]:
            continue
        figure, change = FIGURES[name], change_of(*values)
        texts = [" ".join(map(figure.text, each)) for each in values]
        medians = [figure.text(each.median(name)) for each in (old, new)]
        print(f"| {old.load} | {figure.label} | {medians[0]} | {medians[1]} | {change} |")
        print(f"    old: {texts[0]}\n    new: {texts[1]}", flush=True)
        changes.append(change)
    return changes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new", nargs="?", help="without it, this working tree")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", default="", help="loads whose name has this text in it")
    parser.add_argument("--change-max", type=float, help="the largest change that passes, in percent")
    asked = parser.parse_args()
    with bench_folder(None) as folder, ExitStack() as stack:
        new_source = ROOT / "src" if asked.new is None else source_of(asked.new, folder / "new")
        sources = {"old": source_of(asked.old, folder / "old"), "new": new_source}
        client = ReplayClient(folder)
        brokers = [
            stack.enter_context(CommitBroker(name, folder / f"broker-{name}", source)).start()
            for name, source in sources.items()
        ]
        print("| load | figure | old | new | change (95 % interval) |\n|---|---|---|---|---|", flush=True)
        changes: list[Change] = []
        for load, make in loads(client, asked.seconds).items():
            if asked.only in load:
                subjects = {broker.name: make(broker) for broker in brokers}
                changes += print_rows(in_changing_turns(load, subjects, rounds=asked.rounds))
    if asked.change_max is not None and any(100 * change.middle > asked.change_max for change in changes):
        sys.exit(f"a figure grew by more than {asked.change_max} %")


if __name__ == "__main__":
    main()

"""Plain produce, fetch and offset commits of an older commit beside this one: brokers of both in turns, their CPU.

    python tools/commit_figures.py COMMIT [--rounds 7] [--seconds 2] [--only fetch]

The load, the Python and the packages are the same for both; only `src` is that of the commit.
"""

import argparse
import io
import subprocess
import tarfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from headrace.bench import processes
from headrace.bench.brokers import SHARED_SETTINGS, BrokerProcess, HeadraceBroker
from headrace.bench.commits import CommitRounds
from headrace.bench.consume import REPLAY, ConsumeRounds, SmallFetchRounds
from headrace.bench.figures import FIGURES, Measurement, Round
from headrace.bench.loads import LARGE, PIPELINED, SINGLE
from headrace.bench.machine import bench_folder
from headrace.bench.produce import ProduceRounds
from headrace.bench.replay import ReplayClient
from headrace.bench.rounds import Measured, settle_disk

FETCHED_BYTES = 1_000_000_000
SMALL_FETCHES = 60_000
FIGURES_SHOWN = ("cpu_us_per_request", "cpu_seconds_per_gigabyte")
ROOT = Path(__file__).parents[1]


class CommitBroker(HeadraceBroker):
    """One whose code is in a folder of its own."""

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


def source_of(commit: str, folder: Path) -> Path:
    """The `src` of a commit, put into the folder."""
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "src"],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


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
    """A B, B A and so on: brokers this alike differ less than being the first or the second does."""
    found: dict[str, list[Round]] = {name: [] for name in subjects}
    for number in range(rounds):
        for name in list(subjects)[:: -1 if number % 2 else 1]:
            settle_disk()
            found[name].append(subjects[name]())
    return [Measurement(load=load, subject=name, client="", rounds=tuple(each)) for name, each in found.items()]


def print_rows(found: list[Measurement]) -> None:
    old, new = found
    for figure in FIGURES_SHOWN:
        if old.values(figure):
            rounds = [" ".join(FIGURES[figure].text(value) for value in one.values(figure)) for one in (old, new)]
            medians = [old.median(figure), new.median(figure)]
            texts = [FIGURES[figure].text(value) for value in medians]
            change = f"{100 * (medians[1] / medians[0] - 1):+.0f} %"
            print(f"| {old.load} | {FIGURES[figure].label} | {texts[0]} | {texts[1]} | {change} |")
            print(f"    before: {rounds[0]}\n    now:    {rounds[1]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", default="", help="loads whose name has this text in it")
    asked = parser.parse_args()
    with bench_folder(None) as folder, ExitStack() as stack:
        sources = {"before": source_of(asked.commit, folder / "commit"), "now": ROOT / "src"}
        client = ReplayClient(folder)
        brokers = [
            stack.enter_context(CommitBroker(name, folder / f"broker-{name}", source)).start()
            for name, source in sources.items()
        ]
        print("| load | figure | before | now | change |\n|---|---|---|---|---|", flush=True)
        for load, make in loads(client, asked.seconds).items():
            if asked.only not in load:
                continue
            subjects = {broker.name: make(broker) for broker in brokers}
            print_rows(in_changing_turns(load, subjects, rounds=asked.rounds))


if __name__ == "__main__":
    main()

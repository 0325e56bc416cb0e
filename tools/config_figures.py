"""Measure what one broker config costs: two brokers of this commit in turns, one with the config and one without.

    python -m tools.config_figures headrace.validate.records=header [--rounds 9] [--seconds 2] [--only produce]

The first column has the config as given, the second has the default.
"""

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from headrace.bench.brokers import BrokerProcess, HeadraceBroker
from headrace.bench.loads import MEDIUM
from headrace.bench.machine import bench_folder
from headrace.bench.produce import ProduceRounds
from headrace.bench.replay import ReplayClient
from headrace.bench.rounds import Measured
from tools import commit_figures
from tools.bench.durable import DURABLE_LOADS, DurableRounds


def loads(client: ReplayClient, seconds: float, folder: Path) -> dict[str, Callable[[BrokerProcess], Measured]]:
    made = commit_figures.loads(client, seconds)
    medium = replace(MEDIUM, seconds=seconds)
    made[f"produce, {MEDIUM.name}"] = partial(ProduceRounds, client=client, load=medium, topic="medium")
    for number, (name, load) in enumerate(DURABLE_LOADS.items()):
        made[name] = partial(DurableRounds, client=client, load=load, folder=folder, topic=f"durable-{number}")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", metavar="KEY=VALUE")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", default="", help="loads whose name contains this text")
    parser.add_argument("--folder", type=Path, help="where the brokers keep their data")
    asked = parser.parse_args()
    key, _, value = asked.config.partition("=")
    with bench_folder(asked.folder) as folder, ExitStack() as stack:
        client = ReplayClient(folder)
        brokers = [
            stack.enter_context(HeadraceBroker(folder / name, settings, name)).start()
            for name, settings in (("given", {key: value}), ("default", {}))
        ]
        print(f"| load | figure | {asked.config} | default | change |\n|---|---|---|---|---|", flush=True)
        for load, make in loads(client, asked.seconds, folder).items():
            if asked.only in load:
                subjects = {broker.name: make(broker) for broker in brokers}
                commit_figures.print_rows(commit_figures.in_changing_turns(load, subjects, rounds=asked.rounds))


if __name__ == "__main__":
    main()

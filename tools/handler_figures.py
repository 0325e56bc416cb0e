"""Compare the CPU time that the code of two commits takes per Produce request, without sockets and disks.

    python -m tools.handler_figures OLD [NEW] [--rounds 20] [--change-max 2]

Without NEW, the second one is this working tree. Every round measures both in processes of their own: a virtual node
gets requests of 100 bytes, each process repeats its measurement, and the least value counts, because other programs on
the machine only add. The change and its 95 % interval are those of `tools.commit_figures`, which measures whole brokers
and needs a quiet machine.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

PARTITIONS = 32
SETS = 8
"""Record sets of a request that takes all stages."""
REPETITIONS = 12
ROOT = Path(__file__).parents[1]
FILES = ("tests/__init__.py", "tests/broker/__init__.py", "tests/broker/virtual.py")
SHORT = "short path, 1 record set, with the end of the turn"
STAGES = f"all stages, {SETS} record sets"


class _Transport:
    """Stands for a socket that is never used."""

    token = 1
    peer_address = "client:1"


def measured() -> dict[str, float]:
    """Measure the `headrace` and `tests` of this process: microseconds of CPU per request, by the name of the path."""
    from headrace.broker.api.dispatch import Dispatcher
    from headrace.broker.net.connection import Connection
    from tests.broker.virtual import VirtualBroker, produce_frame, produce_request

    virtual: Any = VirtualBroker().with_topic("t", partitions=PARTITIONS)
    client, broker = virtual.client(), virtual.node.broker
    broker.turn_wall_ms = client.now()
    dispatcher, batch = Dispatcher(broker), client.batch(bytes(100))

    def request(*indexes: int) -> bytes:
        return bytes(produce_frame(produce_request([("t", [(index, batch) for index in indexes])])))

    def connection() -> Any:
        return Connection(_Transport(), "PLAINTEXT", [], 0.0)  # type: ignore[arg-type]

    partitions = [virtual.partition("t", index) for index in range(PARTITIONS)]
    for partition in partitions:
        partition.log.write_staged = partition.log.discard_staged  # the virtual disk would take most of the time
    producers = []
    for index in range(PARTITIONS):
        producer, frame = connection(), request(index)
        dispatcher.handle_frame(producer, memoryview(bytearray(frame)), 4, len(frame))
        producers.append((producer, frame, memoryview(bytearray(frame))))

    def short_path() -> int:
        for producer, frame, buffer in producers:
            buffer[:] = frame  # offsets and epoch were written into it
            assert dispatcher.handle_repeat(producer, buffer, 0, len(buffer)), "the request is recognised"
            producer.responses.clear()
        broker.partitions.end_turn()
        return PARTITIONS

    client_of_all, frame = connection(), request(*range(SETS))
    buffer = memoryview(bytearray(frame))

    def all_stages() -> int:
        for _ in range(PARTITIONS):
            dispatcher.handle_frame(client_of_all, buffer, 4, len(buffer))
        client_of_all.responses.clear()
        broker.partitions.end_turn()
        return PARTITIONS

    return {SHORT: least_us(short_path), STAGES: least_us(all_stages)}


def least_us(turn: Callable[[], int]) -> float:
    """Return the least CPU time per request of several repetitions; a turn returns the number of its requests."""
    times = []
    for _ in range(REPETITIONS):
        began = time.process_time_ns()
        requests = sum(turn() for _ in range(30))
        times.append((time.process_time_ns() - began) / requests / 1000)
    return min(times)


def measure_in_process(tree: Path) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{tree}"}
    command = [sys.executable, "-P", str(Path(__file__)), "--measure"]
    done = subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return dict(zip((SHORT, STAGES), map(float, done.stdout.split()), strict=True))


def main() -> None:
    from headrace.bench.machine import bench_folder
    from tools.commit_figures import Change, change_of, source_of

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new", nargs="?", help="without it, this working tree")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--change-max", type=float, help="the largest change that passes, in percent")
    asked = parser.parse_args()
    with bench_folder(None) as folder:
        new = ROOT if asked.new is None else source_of(asked.new, folder / "new", *FILES).parent
        trees = {"old": source_of(asked.old, folder / "old", *FILES).parent, "new": new}
        found: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
        for number in range(asked.rounds):
            for name in list(trees)[:: -1 if number % 2 else 1]:
                found[name].append(measure_in_process(trees[name]))
    print("| path | old, us/request | new, us/request | change (95 % interval) |\n|---|---|---|---|")
    changes: list[Change] = []
    for path in (SHORT, STAGES):
        old, now = ([each[path] for each in found[name]] for name in ("old", "new"))
        changes.append(change_of(old, now))
        print(f"| {path} | {median(old):.2f} | {median(now):.2f} | {changes[-1]} |")
    if asked.change_max is not None and any(100 * change.middle > asked.change_max for change in changes):
        sys.exit(f"a path takes more than {asked.change_max} % longer")


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        print(*measured().values())
    else:
        main()

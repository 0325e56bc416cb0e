"""Faults of brokers with three replicas under the load of stock clients.

`python -m tests.cluster_process.replica_faults 'kills of leaders' --count 10 --seed 1` inflicts one kind of them and
prints what the load survived, as JSON; it fails if a record was lost, doubled or reordered, or a transaction was torn.
"""

import argparse
import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from headrace import Admin
from headrace.operations.local_nodes import LocalNode
from headrace.testing import EmbeddedCluster
from tests.cluster_process.isolated_cluster import PREFIX, IsolatedCluster
from tests.cluster_process.isolated_cluster import what_lacks as what_namespaces_lack
from tests.cluster_process.replicated_load import PARTITIONS, WAIT_S_MAX, ReplicatedLoad
from tests.process_groups import wait_until
from tests.small_disks import small_file_system

RATE = 10_000
"""Records per second."""
CONFIG = {"auto.create.topics.enable": "false"}
PAUSE_S = (8.0, 12.0)
"""Longer than the session of a broker."""
CUT_S = (2.0, 12.0)
FULL_S = 5.0
SMALL_DISK_BYTES = 512 << 20
FLIPS = 3
SEGMENT_BYTES = 1 << 20
"""Small segments, so that there are closed ones to damage."""


@dataclass(slots=True, kw_only=True)
class Survived:
    faults: int = 0
    acknowledged: int = 0
    transactions: int = 0
    gaps_ms: list[int] = field(default_factory=list)
    """Of each fault: the longest time in which a partition acknowledged nothing."""


@dataclass(slots=True, kw_only=True)
class Scene:
    cluster: EmbeddedCluster
    load: ReplicatedLoad
    source: random.Random
    folder: Path

    def leader(self) -> int:
        """Return the leader of a partition that is drawn."""
        return self.cluster.leader(self.load.topics[0], self.source.randrange(PARTITIONS))

    def data_folder(self, node_id: int) -> Path:
        return self.folder / f"broker-{node_id}"

    def others(self, node_id: int) -> str:
        """Return the addresses of the other brokers."""
        nodes = (other for other in self.cluster.node_ids if other != node_id)
        return ",".join(map(self.cluster.address, nodes))

    def wait_until_replaced(self, victim: int) -> None:
        """Wait until the broker leads nothing of the load."""
        with Admin(self.others(victim)) as admin:
            wait_until(lambda: victim not in _leaders(admin, self.load.topics), "it still leads", WAIT_S_MAX)


def _leaders(admin: Admin, topics: list[str]) -> set[int]:
    return {partition.leader for topic in admin.topics(topics) for partition in topic.partitions}


# --- the faults ------------------------------------------------------------------------------------------------------


def kill_a_leader(scene: Scene) -> None:
    victim = scene.leader()
    scene.cluster.kill(victim)
    scene.load.wait_for_progress()
    scene.cluster.restart(victim)


def kill_every_broker(scene: Scene) -> None:
    for node_id in scene.cluster.node_ids:
        scene.cluster.kill(node_id)
    scene.cluster.restart(*scene.cluster.node_ids)


def pause_a_leader(scene: Scene) -> None:
    victim = scene.leader()
    scene.cluster.pause(victim)
    began_s = time.monotonic()
    try:
        scene.wait_until_replaced(victim)
        time.sleep(max(0.0, began_s + scene.source.uniform(*PAUSE_S) - time.monotonic()))
    finally:
        scene.cluster.resume(victim)


def cut_a_broker_off(scene: Scene) -> None:
    victim = scene.leader()
    others = [node_id for node_id in scene.cluster.node_ids if node_id != victim]
    _cut(scene, *((victim, other) for other in others), *((other, victim) for other in others))


def cut_one_way(scene: Scene) -> None:
    victim = scene.leader()
    others = [node_id for node_id in scene.cluster.node_ids if node_id != victim]
    chosen = scene.source.sample(others, scene.source.randint(1, len(others)))
    if scene.source.random() < 0.5:
        _cut(scene, *((victim, other) for other in chosen))
    else:
        _cut(scene, *((other, victim) for other in chosen))


def _cut(scene: Scene, *directions: tuple[int, int]) -> None:
    assert isinstance(scene.cluster, IsolatedCluster)
    with scene.cluster.cut(*directions):
        time.sleep(scene.source.uniform(*CUT_S))


def fill_a_disk(scene: Scene) -> None:
    """Leave no space on the disk of the first broker, which is small, for some seconds."""
    filler = scene.data_folder(1) / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 16)):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    try:
        time.sleep(FULL_S)
        scene.load.wait_for_progress()
    finally:
        filler.unlink()


def fail_syncs(scene: Scene) -> None:
    """Let every sync of one broker fail with EIO; it stops by itself, and is started again."""
    victim = scene.leader()
    process_id = scene.cluster.process_id(victim)
    faults = "enable name=posix/io/sync/*,failinfo=5"
    fifo = str(scene.folder / f"fiu-{victim}")
    subprocess.run(["fiu-ctrl", "-f", fifo, "-c", faults, str(process_id)], check=True, timeout=30)
    scene.wait_until_replaced(victim)
    scene.load.wait_for_progress()
    scene.cluster.kill(victim)
    scene.cluster.restart(victim)


def flip_bits(scene: Scene) -> None:
    """Damage segments of a broker that is down, at random places, and have it lead again."""
    victim = scene.leader()
    scene.cluster.kill(victim)
    segments = sorted(
        path
        for topic in scene.load.topics
        for path in scene.data_folder(victim).glob(f"{topic}-*/*.log")
        if path.stat().st_size
    )
    for path in scene.source.sample(segments, min(FLIPS, len(segments))):
        _flip_a_bit(path, scene.source)
    scene.cluster.restart(victim)


def _flip_a_bit(path: Path, source: random.Random) -> None:
    with path.open("r+b") as file:
        place = source.randrange(path.stat().st_size)
        file.seek(place)
        (before,) = file.read(1)
        file.seek(place)
        file.write(bytes([before ^ (1 << source.randrange(8))]))


# --- where they happen -----------------------------------------------------------------------------------------------

Place = Callable[[Path], AbstractContextManager[EmbeddedCluster]]


def _three_brokers(folder: Path) -> EmbeddedCluster:
    return EmbeddedCluster(brokers=3, data_dir=str(folder), config=CONFIG)


def _small_segments(folder: Path) -> EmbeddedCluster:
    return EmbeddedCluster(brokers=3, data_dir=str(folder), config={**CONFIG, "log.segment.bytes": str(SEGMENT_BYTES)})


def _isolated(folder: Path) -> IsolatedCluster:
    return IsolatedCluster(data_dir=str(folder), config=CONFIG)


@contextmanager
def _small_disk(folder: Path) -> Iterator[EmbeddedCluster]:
    small = folder / "broker-1"
    small.mkdir()
    with small_file_system(small, SMALL_DISK_BYTES), _three_brokers(folder) as cluster:
        yield cluster


class _FailingSyncs(EmbeddedCluster):
    """Brokers whose system calls libfiu can have fail."""

    def _command(self, node: LocalNode) -> list[str]:
        fifo = str(Path(node.folder).with_name(f"fiu-{node.node_id}"))
        return ["fiu-run", "-x", "-f", fifo, *super()._command(node)]


def _failing_syncs(folder: Path) -> EmbeddedCluster:
    return _FailingSyncs(brokers=3, data_dir=str(folder), config=CONFIG)


def _nothing() -> str:
    return ""


def _root() -> str:
    return "" if os.geteuid() == 0 else "a small disk can be mounted by root only"


def _libfiu() -> str:
    return "" if shutil.which("fiu-ctrl") else "there is no libfiu: apt-get install fiu-utils"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    inflict: Callable[[Scene], None]
    place: Place = _three_brokers
    lacks: Callable[[], str] = _nothing
    """Returns why it cannot be inflicted here; empty if it can."""
    prefix: tuple[str, ...] = ()
    """The beginning of the command."""


FAULTS: Mapping[str, Fault] = {
    "kills of leaders": Fault(inflict=kill_a_leader),
    "kills of every broker": Fault(inflict=kill_every_broker),
    "pauses of leaders": Fault(inflict=pause_a_leader),
    "cuts": Fault(inflict=cut_a_broker_off, place=_isolated, lacks=what_namespaces_lack, prefix=PREFIX),
    "one-way cuts": Fault(inflict=cut_one_way, place=_isolated, lacks=what_namespaces_lack, prefix=PREFIX),
    "full disks": Fault(inflict=fill_a_disk, place=_small_disk, lacks=_root),
    "failing syncs": Fault(inflict=fail_syncs, place=_failing_syncs, lacks=_libfiu),
    "bit flips": Fault(inflict=flip_bits, place=_small_segments),
}


def survive(name: str, folder: Path, *, count: int, seed: int, rate: int = RATE) -> Survived:
    """Inflict a fault `count` times, and check at the end that the load has lost nothing."""
    fault = FAULTS[name]
    survived = Survived(faults=count)
    with fault.place(folder) as cluster:
        load = ReplicatedLoad(cluster, rate=rate, seed=seed)
        scene = Scene(cluster=cluster, load=load, source=random.Random(seed), folder=folder)
        with load.running():
            load.wait_until_in_sync()
            for _ in range(count):
                load.produced.forget_gaps()
                fault.inflict(scene)
                load.wait_for_progress()
                survived.gaps_ms.append(round(1_000 * load.produced.longest_gap_s))
                load.wait_until_in_sync()
        load.check()
    survived.acknowledged = sum(load.produced.acknowledged.values())
    survived.transactions = load.transactions.committed
    return survived


def command(name: str, *, count: int, seed: int, rate: int = RATE) -> list[str]:
    """Return the command that inflicts a fault, in a process of its own."""
    words = ("-m", __spec__.name if __spec__ else __name__, name, "--count", str(count), "--seed", str(seed))
    return [*FAULTS[name].prefix, sys.executable, *words, "--rate", str(rate)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=RATE, help="records per second")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="where data and logs stay")
    arguments = parser.parse_args()
    if lacking := FAULTS[arguments.fault].lacks():
        parser.error(lacking)
    with tempfile.TemporaryDirectory(prefix="headrace-chaos-") as temporary:
        folder = arguments.keep or Path(temporary)
        survived = survive(arguments.fault, folder, count=arguments.count, seed=arguments.seed, rate=arguments.rate)
    print(json.dumps(asdict(survived)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

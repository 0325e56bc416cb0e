"""A cluster on this machine that outlives the command that starts it: `headrace up` and `headrace down`.

Its folder has a file that describes it, and for each broker a data folder and a log. The lock of a data folder tells
whether its broker runs, and in which process.
"""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from headrace.operations.errors import OperationError
from headrace.operations.folder_owner import folder_owner
from headrace.operations.local_nodes import (
    LocalNode,
    NodeProcess,
    controllers_for,
    log_file,
    node_command,
    share_key,
    wait_until_formed,
    wait_until_ready,
)
from headrace.ports.real.held_ports import LOOPBACK

CLUSTER_FILE = "cluster.json"
CLUSTER_FILE_BYTES_MAX = 1 << 20
BROKERS_DEFAULT = 3
CLIENT_PORT_FIRST = 9092
CLUSTER_PORT_FIRST = 19092
PORTS_TRIED_MAX = 5_000
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 90
LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """The parts of the cluster; it only grows."""

    controllers: int
    shards: int
    brokers: tuple[tuple[int, int, int], ...]
    """Node id, client port and cluster port of each broker."""


class RunningNode(NamedTuple):
    id: int
    pid: int
    address: str
    data_dir: str


class LocalCluster:
    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    def up(self, *, brokers: int | None, controllers: int | None, shards: int | None) -> list[RunningNode]:
        """Start the brokers that do not run, and return all nodes once they form the cluster.

        None stands for what the cluster already has, or for the default of a new one.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            plan = self._grown(self._read(), brokers, controllers, shards, held)
            nodes = self._nodes(plan)
            stopped = [node for node in nodes if owner_of(node.folder) is None]
            self._write(plan)
            share_key(nodes)
            commands = [node_command(node, nodes, controllers=plan.controllers) for node in stopped]
            started = [
                NodeProcess(node, command, stops_with_starter=False)
                for node, command in zip(stopped, commands, strict=True)
            ]
            try:
                wait_until_ready(started, seconds_max=START_SECONDS_MAX)
                wait_until_formed(nodes, controllers=plan.controllers, seconds_max=START_SECONDS_MAX)
            finally:
                for each in started:
                    each.release()
        return list(_running(nodes))

    def down(self) -> int:
        """Stop all brokers and return how many ran."""
        plan = self._read()
        if plan is None:
            raise OperationError(f"there is no cluster in {self._folder}: headrace up --data-dir DIR starts one")
        nodes = self._nodes(plan)
        owners = {node: owner for node in nodes if (owner := owner_of(node.folder)) is not None}
        for owner in owners.values():
            os.kill(owner, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS_MAX
        while left := [node for node, owner in owners.items() if owner_of(node.folder) == owner]:
            if time.monotonic() > deadline:
                node = left[0]
                raise OperationError(
                    f"broker {node.node_id} (process {owners[node]}) has not stopped within {STOP_SECONDS_MAX} s; "
                    f"see {log_file(node)}"
                )
            time.sleep(LOOK_SECONDS)
        return len(owners)

    # The plan

    def _grown(
        self,
        plan: ClusterPlan | None,
        brokers: int | None,
        controllers: int | None,
        shards: int | None,
        held: ExitStack,
    ) -> ClusterPlan:
        """Return the plan with as many brokers as asked for; the ports of new ones are held until they listen."""
        known = () if plan is None else plan.brokers
        wanted = brokers or len(known) or BROKERS_DEFAULT
        if wanted < len(known):
            raise OperationError(
                f"the cluster in {self._folder} has {len(known)} brokers, asked for {wanted}: brokers are not removed, "
                "because their replicas would be lost; use another --data-dir for a smaller cluster"
            )
        shard_count = shards or (1 if plan is None else plan.shards)
        if plan is not None and shard_count != plan.shards:
            raise OperationError(
                f"the cluster in {self._folder} has --shards {plan.shards}, asked for {shard_count}: the ports of its "
                "brokers are chosen once; use another --data-dir"
            )
        voters = controllers or (controllers_for(wanted) if plan is None else plan.controllers)
        if voters > wanted * shard_count:
            raise OperationError(
                f"{voters} controllers need as many brokers, asked for {wanted}: give --brokers {voters}"
            )
        taken = {port + shard for _, *ports in known for port in ports for shard in range(shard_count)}
        new = []
        for node_id in range(len(known) + 1, wanted + 1):
            port = hold_ports(CLIENT_PORT_FIRST, shard_count, taken=taken, held=held)
            cluster_port = hold_ports(CLUSTER_PORT_FIRST, shard_count, taken=taken, held=held)
            new.append((node_id, port, cluster_port))
        return ClusterPlan(controllers=voters, shards=shard_count, brokers=(*known, *new))

    def _nodes(self, plan: ClusterPlan) -> list[LocalNode]:
        return [
            LocalNode(node_id, port, cluster_port, str(self._folder / f"broker-{node_id}"), plan.shards)
            for node_id, port, cluster_port in plan.brokers
        ]

    def _read(self) -> ClusterPlan | None:
        path = self._folder / CLUSTER_FILE
        try:
            with path.open("rb") as file:
                content = json.loads(file.read(CLUSTER_FILE_BYTES_MAX))
            return ClusterPlan(
                controllers=int(content["controllers"]),
                shards=int(content["shards"]),
                brokers=tuple((int(node), int(port), int(peer)) for node, port, peer in content["brokers"]),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            raise OperationError(f"{path} is damaged: restore it, or use another --data-dir") from None

    def _write(self, plan: ClusterPlan) -> None:
        temporary = self._folder / f"{CLUSTER_FILE}.tmp"
        temporary.write_text(json.dumps(asdict(plan)))
        temporary.rename(self._folder / CLUSTER_FILE)


def owner_of(node_folder: str) -> int | None:
    """Return the process that uses a data folder; None if none does."""
    try:
        return folder_owner(node_folder)
    except FileNotFoundError:
        return None


def hold_ports(first: int, count: int, *, taken: set[int], held: ExitStack) -> int:
    """Reserve consecutive ports that are free, from `first` on, until `held` is closed, and return the lowest."""
    for start in range(first, first + PORTS_TRIED_MAX, count):
        ports = range(start, start + count)
        if taken.isdisjoint(ports):
            with ExitStack() as these:
                if all(_held(port, these) for port in ports):
                    held.push(these.pop_all())
                    taken.update(ports)
                    return start
    raise OperationError(f"no {count} free ports from {first} to {first + PORTS_TRIED_MAX}: stop what uses them")


def _held(port: int, held: ExitStack) -> bool:
    holder = held.enter_context(socket.socket())
    try:
        holder.bind((LOOPBACK, port))
    except OSError:
        return False
    # Set after bind, which would share the port with another holder: a broker may listen on it from now on.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return True


def _running(nodes: Sequence[LocalNode]) -> Iterator[RunningNode]:
    """Yield all nodes, after waiting for shards that have just ended: their parents start them again."""
    deadline = time.monotonic() + START_SECONDS_MAX
    for node in nodes:
        for node_id, address, home in zip(node.node_ids, node.addresses, node.homes, strict=True):
            while (owner := owner_of(home)) is None:
                if owner_of(node.folder) is None or time.monotonic() > deadline:
                    raise OperationError(f"broker {node_id} has just ended; see {log_file(node)}")
                time.sleep(LOOK_SECONDS)
            yield RunningNode(node_id, owner, address, home)

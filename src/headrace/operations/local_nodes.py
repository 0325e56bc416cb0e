"""Brokers of one cluster on this machine: their configs and commands, and the wait until they form the cluster."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.log.cluster_key import new_cluster_id, new_cluster_key, write_cluster_key
from headrace.model.toml_text import toml_lines
from headrace.operations.errors import OperationError
from headrace.operations.secret_files import is_sensitive
from headrace.ports.real.disk import RealDisk
from headrace.ports.real.entropy import RealEntropy
from headrace.ports.real.held_ports import LOOPBACK
from headrace.shards.layout import copy_key, has_key, is_formatted, shard_folder, shard_node_id

CONTROLLERS_DEFAULT = 3
LOOK_SECONDS = 0.02
ANSWER_MS_MAX = 2_000
"""Time for one response of a broker that has just been started."""
LOG_TAIL_BYTES = 4096
"""End of a log in which the reason of a failure is looked for."""
LOG_START_BYTES_MAX = 1 << 20
"""Beginning of a log in which a broker prints its addresses."""
LISTENING = b"headrace listening on "


class LocalNode(NamedTuple):
    """A broker of this machine, or the parent of `shards` brokers: shard s has the s-th port from each on."""

    node_id: int
    port: int
    cluster_port: int
    folder: str
    shards: int = 1
    host: str = LOOPBACK

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def cluster_address(self) -> str:
        return f"{self.host}:{self.cluster_port}"

    @property
    def homes(self) -> list[str]:
        """Return the data folder of each of its brokers."""
        if self.shards == 1:
            return [self.folder]
        return [shard_folder(self.folder, shard) for shard in range(self.shards)]

    @property
    def node_ids(self) -> list[int]:
        return [shard_node_id(self.node_id, shard) for shard in range(self.shards)]

    @property
    def addresses(self) -> list[str]:
        return [f"{self.host}:{self.port + shard}" for shard in range(self.shards)]


def controllers_for(brokers: int) -> int:
    """Return the default number of controllers: as many voters as can lose one, if there are enough brokers."""
    return CONTROLLERS_DEFAULT if brokers >= CONTROLLERS_DEFAULT else 1


def node_command(
    node: LocalNode, nodes: Sequence[LocalNode], *, controllers: int, configs: Mapping[str, str] | None = None
) -> list[str]:
    """Return the command that runs a node of the cluster; the first one founds it, if no folder is in use yet.

    Passwords among the configs are in a private file: other users can read the arguments of a process.
    """
    secrets = {name: text for name, text in (configs or {}).items() if is_sensitive(name)}
    texts = {
        "node.id": str(node.node_id),
        "headrace.host": f"broker-{node.node_id}",  # each one is a failure domain, though all share a machine
        "headrace.controllers.target": str(controllers),
        **{name: text for name, text in (configs or {}).items() if name not in secrets},
    }
    peers = [other.cluster_address for other in nodes if other.node_id != node.node_id]
    founds = node == nodes[0] and not any(is_formatted(home) for other in nodes for home in other.homes)
    return [
        *(sys.executable, "-m", "headrace", "broker", "--data-dir", node.folder),
        *("--listen", node.address, "--cluster-listen", node.cluster_address, "--shards", str(node.shards)),
        *(() if founds or not peers else ("--peers", ",".join(peers))),
        *(("--config", _private_file(node, secrets)) if secrets else ()),
        *(word for name, text in texts.items() for word in ("--set", f"{name}={text}")),
    ]


def _private_file(node: LocalNode, configs: Mapping[str, str]) -> str:
    path = Path(f"{node.folder}.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(toml_lines(configs))
    return str(path)


def share_key(nodes: Sequence[LocalNode]) -> None:
    """Give every data folder the key of the cluster: that of a folder that has one, or a new one."""
    homes = [home for node in nodes for home in node.homes]
    for home in homes:
        Path(home).mkdir(parents=True, exist_ok=True)
    source = next((home for home in homes if has_key(home)), None)
    if source is None:
        source = homes[0]
        entropy = RealEntropy()
        write_cluster_key(RealDisk(), source, new_cluster_key(entropy, new_cluster_id(entropy)))
    for home in homes:
        if not has_key(home):
            copy_key(source, home)


class NodeProcess:
    """A node that this process starts; everything it prints goes to a log beside its data folder, which outlives it."""

    def __init__(self, node: LocalNode, command: Sequence[str], *, stops_with_starter: bool) -> None:
        self.node = node
        self.log = log_file(node)
        self._log_begin = self.log.stat().st_size if self.log.exists() else 0
        options = ["--until-eof"] if stops_with_starter else []
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
                [*command, *options],
                stdin=subprocess.PIPE if stops_with_starter else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the program that started it
            )

    def check(self) -> None:
        """Raise OperationError if the process has ended."""
        if (status := self.process.poll()) is not None:
            said = last_line(self.log)
            raise OperationError(
                f"broker {self.node.node_id} ended with status {status}{f': {said}' if said else ''}; see {self.log}"
            )

    @property
    def is_ready(self) -> bool:
        """Tell whether it has printed its addresses, as a broker does when it serves clients."""
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            return LISTENING in log.read(LOG_START_BYTES_MAX)

    def release(self) -> None:
        """Close the pipe to the process; one that stops with its starter stops."""
        if self.process.stdin is not None:
            self.process.stdin.close()


def log_file(node: LocalNode) -> Path:
    return Path(f"{node.folder}.log")


def last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def wait_until_ready(processes: Sequence[NodeProcess], *, seconds_max: float) -> None:
    """Wait until every process serves clients; raise OperationError if one ends, or at the time limit."""
    deadline = time.monotonic() + seconds_max
    while waiting := [each for each in processes if not each.is_ready]:
        for each in processes:
            each.check()
        if time.monotonic() > deadline:
            late = ", ".join(str(each.node.node_id) for each in waiting)
            raise OperationError(f"broker {late} does not serve clients after {seconds_max:g} s; see {waiting[0].log}")
        time.sleep(LOOK_SECONDS)


def wait_until_formed(nodes: Sequence[LocalNode], *, controllers: int, seconds_max: float) -> None:
    """Wait until all nodes are registered and the controllers are voters; raise OperationError at the time limit."""
    node_ids = {node_id for node in nodes for node_id in node.node_ids}
    bootstrap = ",".join(node.address for node in nodes)
    deadline = time.monotonic() + seconds_max
    while lacking := _lacking(bootstrap, node_ids, controllers):
        if time.monotonic() > deadline:
            raise OperationError(
                f"the cluster is not complete after {seconds_max:g} s: {lacking}; see {log_file(nodes[0])}"
            )
        time.sleep(LOOK_SECONDS)


def _lacking(bootstrap: str, node_ids: set[int], controllers: int) -> str:
    """Return what the cluster lacks; empty if it is complete."""
    try:
        with Admin(bootstrap, timeout_ms=ANSWER_MS_MAX) as admin:
            missing = node_ids - {broker.node_id for broker in admin.cluster().brokers}
            if missing:
                return f"broker {', '.join(map(str, sorted(missing)))} is not registered"
            voters = len(admin.quorum().voters)
    except ClientError as error:
        return str(error)
    return "" if voters >= controllers else f"{voters} of {controllers} controllers vote"

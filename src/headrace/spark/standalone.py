"""Run a Spark standalone cluster on this machine, from the pip package: a master and workers on loopback.

`cluster.json` in a folder records the processes with their start times, so that `down` ends exactly those processes and
never one that later got the same process id.
"""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from headrace.ports.real.held_ports import held_port
from headrace.spark.class_archive import (
    DAEMON_JAVA_OPTIONS,
    EXECUTOR_JAVA_OPTIONS,
    JAVA_OPTIONS,
    with_archive,
)
from headrace.spark.session_launcher import LOOPBACK, default_conf, spark_environment

START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 20
LOOK_SECONDS = 0.1
LOG_TAIL_CHARACTERS = 2_000
WORKERS_MAX = 64
WORKER_MEMORY = "1g"

_MASTER_CLASS = "org.apache.spark.deploy.master.Master"
_WORKER_CLASS = "org.apache.spark.deploy.worker.Worker"
_REGISTERED = "Successfully registered with master"
_STATE_FILE = "cluster.json"
_SIZE = re.compile(r"[0-9]+[kmgt]b?")
_HOST = "127.0.0.{}"
"""Part of the loopback network, all of which is this machine."""


class ClusterError(RuntimeError):
    """The cluster cannot be started or does not exist; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    name: str
    process_id: int
    start_ticks: int
    """The start time by the kernel: with the process id, it identifies the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneCluster:
    master: str
    processes: tuple[Process, ...]


def up(folder: Path, *, workers: int, cores: int = 1, memory: str = WORKER_MEMORY) -> StandaloneCluster:
    """Start a master and workers; return when all have registered."""
    if not 1 <= workers <= WORKERS_MAX:
        raise ClusterError(f"a cluster has 1 to {WORKERS_MAX} workers, not {workers}")
    if not _SIZE.fullmatch(memory.lower()):
        raise ClusterError(f'the memory of a worker must be a size such as 512m or 2g, not "{memory}"')
    running = current(folder)
    if running is not None:
        raise ClusterError(f"a cluster is already running at {running.master}; headrace spark down stops it")
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **spark_environment(is_local=True)}
    environment = with_archive(environment, Path(environment["JAVA_HOME"]), names=(DAEMON_JAVA_OPTIONS,))
    started: list[Process] = []
    try:
        with held_port() as holder:  # while Java starts
            port = holder.getsockname()[1]
            master = f"spark://{LOOPBACK}:{port}"
            at = ("--host", LOOPBACK, "--port", str(port), "--webui-port", "0")
            started.append(_start(folder, "master", (_MASTER_CLASS, *at), environment))
            _wait(folder, started[-1], lambda: _is_open(port))
        for number in range(1, workers + 1):
            name = f"worker-{number}"
            work = ("--work-dir", str(folder.absolute() / "work" / name), "--webui-port", "0")
            sizes = ("--cores", str(cores), "--memory", memory)
            # Each has its own address: Spark retries a task only on another host.
            arguments = (_WORKER_CLASS, "--host", _HOST.format(number), *sizes, *work, master)
            started.append(_start(folder, name, arguments, environment))
        for worker in started[1:]:
            _wait(folder, worker, partial(_has_registered, _log(folder, worker.name)))
    except BaseException:
        _stop(started)
        raise
    cluster = StandaloneCluster(master=master, processes=tuple(started))
    (folder / _STATE_FILE).write_text(json.dumps(asdict(cluster), indent=2))
    return cluster


def down(folder: Path) -> StandaloneCluster | None:
    """Stop the cluster of this folder; None if there is none."""
    cluster = _read(folder)
    if cluster is not None:
        _stop(cluster.processes)
        (folder / _STATE_FILE).unlink(missing_ok=True)
    return cluster


def current(folder: Path) -> StandaloneCluster | None:
    """Return the cluster of this folder, if any of its processes runs."""
    cluster = _read(folder)
    return cluster if cluster is not None and any(map(_runs, cluster.processes)) else None


def submit(arguments: Sequence[str], *, master: str) -> int:
    """Run a script as spark-submit does, with our settings as defaults; return its exit code."""
    environment = {**os.environ, **spark_environment(is_local=True)}
    settings = {
        "spark.log.level": "WARN",  # otherwise a script's own output is hard to find
        **default_conf(is_local=True),
    }
    settings = with_archive(settings, Path(environment["JAVA_HOME"]), names=(JAVA_OPTIONS, EXECUTOR_JAVA_OPTIONS))
    conf = [each for pair in settings.items() for each in ("--conf", "=".join(pair))]
    program = Path(environment["SPARK_HOME"], "bin", "spark-submit")
    return subprocess.run([str(program), "--master", master, *conf, *arguments], env=environment).returncode  # noqa: S603


def _start(folder: Path, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Process:
    program = Path(environment["SPARK_HOME"], "bin", "spark-class")
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(_log(folder, name)), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # Not subprocess: these processes outlive the command, and no parent waits for them.
    process_id = os.posix_spawn(program, [str(program), *arguments], environment, file_actions=actions, setsid=True)
    return Process(name=name, process_id=process_id, start_ticks=_start_ticks(process_id) or 0)


def _wait(folder: Path, process: Process, is_ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while not is_ready():
        has_ended = not _runs(process)
        if has_ended or time.monotonic() >= deadline:
            said = _log(folder, process.name).read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]
            what = "ended" if has_ended else f"was not ready in {START_SECONDS_MAX} s"
            raise ClusterError(f"the {process.name} {what}; its output:\n{said}")
        time.sleep(LOOK_SECONDS)


def _has_registered(log: Path) -> bool:
    return _REGISTERED in log.read_text(errors="replace")


def _stop(processes: Sequence[Process]) -> None:
    """Stop the workers first; processes that do not end are killed."""
    for process in reversed(processes):
        _signal(process, signal.SIGTERM)
    _wait_for_end(processes)
    for process in processes:
        _signal(process, signal.SIGKILL)
    _wait_for_end(processes)


def _wait_for_end(processes: Sequence[Process]) -> None:
    deadline = time.monotonic() + STOP_SECONDS_MAX
    while any(_runs(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def _signal(process: Process, number: signal.Signals) -> None:
    if _runs(process):
        try:
            os.kill(process.process_id, number)
        except ProcessLookupError:
            return


def _runs(process: Process) -> bool:
    """Return whether the process runs; a child of this process that has ended is reaped here."""
    try:
        return os.waitpid(process.process_id, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return _start_ticks(process.process_id) == process.start_ticks


def _start_ticks(process_id: int) -> int | None:
    """Return the 22nd field of its line in /proc; the second one, the name, may contain spaces and is in
    parentheses.
    """
    try:
        text = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def _read(folder: Path) -> StandaloneCluster | None:
    try:
        tree = json.loads((folder / _STATE_FILE).read_text())
        return StandaloneCluster(master=tree["master"], processes=tuple(Process(**each) for each in tree["processes"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{folder / _STATE_FILE} cannot be read ({error}): remove it if no cluster runs") from None


def _log(folder: Path, name: str) -> Path:
    return folder / f"{name}.log"


def _is_open(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True

"""`headrace broker`: read the configs and run a broker, or several shards, until a signal stops it."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from headrace.cli.failures import Failure, Misuse
from headrace.cli.options import BOOTSTRAP_DEFAULT, with_default_port
from headrace.model.configs.listeners import address_text
from headrace.model.configs.providers import check_unreferenced, expanded
from headrace.model.configs.sources import (
    SOURCE_TEXT_LENGTH_MAX,
    Setting,
    merged,
    parse_assignments,
    parse_environment,
    parse_file,
)
from headrace.model.configs.values import BrokerConfig
from headrace.operations.secret_files import SecretFiles, is_exposed, is_sensitive

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104  (told, not bound)

CLUSTER_LISTENER = "CONTROLLER://"
CORES_LEFT_FREE = 2
"""Cores that `--shards auto` leaves to the system and to clients."""
AUTO = "auto"
STDIN = 0
INPUT_BYTES = 4096


class _Shards(click.ParamType[int]):
    name = "shards"

    def convert(self, value: Any, parameter: click.Parameter | None, ctx: click.Context | None) -> int:
        from headrace.shards.layout import SHARDS_MAX

        if value == AUTO:
            return min(max(1, len(os.sched_getaffinity(0)) - CORES_LEFT_FREE), SHARDS_MAX)
        try:
            count = int(value)
        except ValueError:
            count = 0
        if not 1 <= count <= SHARDS_MAX:
            self.fail(f'"{value}" is not a number of shards: use 1 to {SHARDS_MAX}, or {AUTO}', parameter, ctx)
        return count


@click.command("broker")
@click.option(
    "--config",
    "config_file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="HEADRACE_CONFIG",
    show_envvar=True,
    help="Config file (.properties or .toml) with Kafka's config names.",
)
@click.option("--set", "assignments", metavar="NAME=VALUE", multiple=True, help="Set a config; may be repeated.")
@click.option("--data-dir", metavar="FOLDER", help="Data directory (log.dirs). [default: ./headrace-data]")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help=f"Address to listen on; port 0 selects a free port. [default: {BOOTSTRAP_DEFAULT}]",
)
@click.option(
    "--cluster-listen",
    metavar="HOST:PORT",
    help="Address for other nodes of the cluster: the listener CONTROLLER. Without it the broker is a cluster of its "
    "own.",
)
@click.option(
    "--peers",
    metavar="HOST:PORT[,...]",
    help="Cluster addresses of other nodes (controller.quorum.bootstrap.servers): join their cluster.",
)
@click.option(
    "--join",
    "token",
    metavar="TOKEN",
    help="Join the cluster that gave this token: headrace cluster invite prints one. It may stay for restarts.",
)
@click.option(
    "--shards",
    metavar="N|auto",
    type=_Shards(),
    default=1,
    help="Run N brokers on this machine, each with its own node id, ports and data folder. auto: the number of cores "
    "minus two, at least one. N can only grow. [default: 1]",
)
@click.option(
    "--until-eof",
    is_flag=True,
    help="Stop when standard input ends, for a program that starts a broker and may be killed.",
)
def command(
    config_file: Path | None,
    assignments: tuple[str, ...],
    data_dir: str | None,
    listen: str | None,
    cluster_listen: str | None,
    peers: str | None,
    token: str | None,
    shards: int,
    until_eof: bool,
) -> None:
    """Run a broker in the foreground.

    Configs are read from the config file, the environment (HEADRACE_LOG_RETENTION_MS sets log.retention.ms) and the
    command line; later sources override earlier ones. By default the broker listens on 127.0.0.1:9092 and stores its
    data in ./headrace-data. When it is ready, it prints `headrace listening on HOST:PORT` as the first line on stdout.
    SIGTERM or Ctrl-C stops it gracefully; a second signal stops it immediately.

    With --shards, shard 0 listens on the given port, shard 1 on the next one, and so on; one line per shard is printed
    when all of them are ready.
    """
    if token is not None and peers is None:
        peers = _address_in(token)
    config = load_config(config_file, assignments, data_dir, listen, cluster_listen=cluster_listen, peers=peers)
    if until_eof:
        _stop_at_end_of_input()
    file_option = () if config_file is None else ("--config", str(config_file))
    set_options = [word for assignment in assignments for word in ("--set", assignment)]
    with _told_failures(config):
        if token is not None:
            _join(token, config, shards)
        sys.exit(_run(config, shards, (*file_option, *set_options)))


def load_config(
    config_file: Path | None,
    assignments: tuple[str, ...],
    data_dir: str | None,
    listen: str | None,
    *,
    cluster_listen: str | None = None,
    peers: str | None = None,
) -> BrokerConfig:
    """Merge file, environment and command line; raise ConfigError or Misuse for invalid configs."""
    secrets = SecretFiles(os.environ)
    from_file = expanded(parse_file(_read(config_file), str(config_file)), secrets) if config_file is not None else []
    environment, flags = parse_environment(os.environ), parse_assignments(assignments)
    check_unreferenced((*environment, *flags))
    arguments = [setting.name for setting in flags if is_sensitive(setting.name)]
    if data_dir is not None:
        flags.append(Setting("log.dirs", data_dir, "--data-dir"))
    if listen is not None:
        flags.append(Setting("listeners", f"PLAINTEXT://{with_default_port(listen)}", "--listen"))
    if peers is not None:
        flags.append(Setting("controller.quorum.bootstrap.servers", peers, "--peers"))
    texts = merged(from_file, environment, flags)
    if cluster_listen is not None:
        texts |= merged([_with_cluster_listener(texts, cluster_listen)])
    config = BrokerConfig.from_texts(texts)
    has_secrets = any(is_sensitive(setting.name) and setting.written is None for setting in from_file)
    files = [*secrets.paths, *([str(config_file)] if has_secrets else []), *config.tls.secret_files]
    _tell_exposed([file for file in dict.fromkeys(files) if is_exposed(file)], arguments, strict=config.secrets_strict)
    return config


def _tell_exposed(files: Sequence[str], arguments: Sequence[str], *, strict: bool) -> None:
    """Warn about secrets that other users of the machine can read; refuse them with headrace.secrets.strict."""
    told = [f"other users can read {file}, which has secrets: chmod 600 {file}" for file in files]
    told += [
        f"other users can read {name} among the arguments of this process: write it in the config file, or in a file "
        "that ${file:...} names there"
        for name in arguments
    ]
    if told and strict:
        raise Misuse("; ".join((*told, "or set headrace.secrets.strict=false")))
    for text in told:
        click.echo(f"headrace: warning: {text}", err=True)


def _with_cluster_listener(texts: Mapping[str, str], address: str) -> Setting:
    """Return the listeners with one more, in place of a cluster listener of the config file."""
    listeners = texts.get("listeners", f"PLAINTEXT://{BOOTSTRAP_DEFAULT}").split(",")
    kept = [listener.strip() for listener in listeners if not listener.strip().upper().startswith(CLUSTER_LISTENER)]
    return Setting("listeners", ",".join((*kept, f"{CLUSTER_LISTENER}{address}")), "--cluster-listen")


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(SOURCE_TEXT_LENGTH_MAX + 1)
    except OSError as error:
        raise Misuse(f"cannot read config file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Misuse(f"config file {path} is not UTF-8 text") from None


def _run(config: BrokerConfig, shards: int, arguments: Sequence[str]) -> int:
    from headrace.shards.layout import check_count

    check_count(config.log_dirs, shards)
    if shards > 1:
        from headrace.shards import parent

        return parent.run(config, shards, arguments, on_ready=_announce)
    from headrace.broker.process import run

    return run(config, on_ready=lambda node: _announce(node.addresses))


def _address_in(token: str) -> str:
    from headrace.core.peers.invitation import BadToken, read_token

    try:
        invitation = read_token(token)
    except BadToken as wrong:
        raise Misuse(f"--join: {wrong}") from None
    return address_text(invitation.host, invitation.port)


def _join(token: str, config: BrokerConfig, shards: int) -> None:
    """Get the cluster key for this broker, or for its first shard, which shares it with the others."""
    from headrace.operations.cluster_membership import join_cluster
    from headrace.shards.layout import shard_folder

    home = config.log_dirs[0]
    join_cluster(token, home if shards == 1 else shard_folder(home, 0))


@contextmanager
def _told_failures(config: BrokerConfig) -> Iterator[None]:
    """Turn the errors of a start into failures that say what to do."""
    from headrace.broker.cluster.metadata_log import MetadataDamaged
    from headrace.log.errors import LogError
    from headrace.ports.disk import DiskLockHeld
    from headrace.shards.errors import ShardError

    try:
        yield
    except DiskLockHeld as held:
        folder = Path(held.path).parent
        owner = f" by process {held.owner}" if held.owner else ""
        raise Failure(f"data folder {folder} is in use{owner}; stop it or choose another with --data-dir") from None
    except ShardError as error:
        raise Misuse(str(error)) from None
    except (LogError, MetadataDamaged) as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(_os_failure(error, config)) from error


def _stop_at_end_of_input() -> None:
    """Have the end of standard input act as SIGTERM: it ends with the process that holds its other end."""
    import signal
    import threading

    def wait_for_end() -> None:
        while os.read(STDIN, INPUT_BYTES):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_end, name="end of input", daemon=True).start()


def _os_failure(error: OSError, config: BrokerConfig) -> str:
    import errno
    from socket import gaierror

    addresses = ", ".join(str(listener) for listener in config.listeners)
    where = f" {error.filename}" if error.filename else ""
    if isinstance(error, gaierror):
        return f"cannot listen on {addresses}: the host name is not known; choose another with --listen"
    match error.errno:
        case errno.EADDRINUSE:
            return f"cannot listen on {addresses}: the port is in use; stop its process or choose another with --listen"
        case errno.EADDRNOTAVAIL:
            return f"cannot listen on {addresses}: not an address of this machine; choose another with --listen"
        case errno.EACCES | errno.EPERM:
            return f"permission denied{where}: choose a folder you may write with --data-dir, or a port above 1023"
        case errno.EROFS:
            return f"the file system is read-only{where}: mount it for writing or choose another folder with --data-dir"
        case errno.ENOSPC:
            return f"the disk is full{where}: free some space or choose another folder with --data-dir"
        case _:
            return f"{error.strerror or error}{where}; headrace doctor may know why"


def _announce(addresses: Sequence[str]) -> None:
    """Print the address and flush it: the process that started the broker waits for this line."""
    for address in addresses:
        sys.stdout.write(f"headrace listening on {ALL_ADDRESSES if address.startswith(':') else ''}{address}\n")
    sys.stdout.flush()

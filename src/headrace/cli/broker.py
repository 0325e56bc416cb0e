"""`headrace broker`: read the configs, then run one node in the foreground until it is told to stop."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from headrace.cli.failures import Failure, Misuse
from headrace.cli.options import BOOTSTRAP_DEFAULT, with_default_port
from headrace.model.configs.sources import (
    SOURCE_TEXT_LENGTH_MAX,
    Setting,
    merged,
    parse_assignments,
    parse_environment,
    parse_file,
)
from headrace.model.configs.values import BrokerConfig

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104  (told, not bound)


@click.command("broker")
@click.option(
    "--config",
    "config_file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="HEADRACE_CONFIG",
    show_envvar=True,
    help="A .properties or .toml file with Kafka's property names.",
)
@click.option("--set", "assignments", metavar="NAME=VALUE", multiple=True, help="Set one config; may be repeated.")
@click.option(
    "--data-dir", metavar="FOLDER", help="Where the data lies (log.dirs); ./headrace-data when nothing says otherwise."
)
@click.option(
    "--listen", metavar="HOST:PORT", help=f"Where to listen; port 0 takes a free one. [default: {BOOTSTRAP_DEFAULT}]"
)
def command(config_file: Path | None, assignments: tuple[str, ...], data_dir: str | None, listen: str | None) -> None:
    """Run a broker in the foreground.

    Configs come from the file, then the environment (HEADRACE_LOG_RETENTION_MS sets log.retention.ms), then the
    command line; the later ones win. Without any, the broker listens on 127.0.0.1:9092 and keeps its data in
    ./headrace-data. The first line on stdout is `headrace listening on HOST:PORT`. SIGTERM or Ctrl-C stops it
    gracefully, a second one at once.
    """
    sys.exit(_run(load_config(config_file, assignments, data_dir, listen)))


def load_config(
    config_file: Path | None, assignments: tuple[str, ...], data_dir: str | None, listen: str | None
) -> BrokerConfig:
    """File, environment and command line merged; ConfigError or Misuse for what cannot be."""
    from_file = parse_file(_read(config_file), str(config_file)) if config_file is not None else []
    flags = parse_assignments(assignments)
    if data_dir is not None:
        flags.append(Setting("log.dirs", data_dir, "--data-dir"))
    if listen is not None:
        flags.append(Setting("listeners", f"PLAINTEXT://{with_default_port(listen)}", "--listen"))
    return BrokerConfig.from_texts(merged(from_file, parse_environment(os.environ), flags))


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(SOURCE_TEXT_LENGTH_MAX + 1)
    except OSError as error:
        raise Misuse(f"cannot read config file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Misuse(f"config file {path} is not UTF-8 text") from None


def _run(config: BrokerConfig) -> int:
    from headrace.broker.cluster.metadata_log import MetadataDamaged
    from headrace.broker.process import run
    from headrace.log.errors import LogError
    from headrace.ports.disk import DiskLockHeld

    try:
        return run(config, on_ready=lambda node: _announce(node.addresses))
    except DiskLockHeld as held:
        folder = Path(held.path).parent
        owner = f" by process {held.owner}" if held.owner else ""
        raise Failure(f"data folder {folder} is in use{owner}; stop it or choose another with --data-dir") from None
    except (LogError, MetadataDamaged) as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(_os_failure(error, config)) from error


def _os_failure(error: OSError, config: BrokerConfig) -> str:
    import errno
    from socket import gaierror

    addresses = ", ".join(str(listener) for listener in config.listeners)
    where = f" {error.filename}" if error.filename else ""
    if isinstance(error, gaierror):
        return f"cannot listen on {addresses}: the host name is not known; choose another with --listen"
    match error.errno:
        case errno.EADDRINUSE:
            return f"cannot listen on {addresses}: the port is taken; stop who uses it or choose another with --listen"
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
    """Written at once: whoever started the broker waits for the first line."""
    for address in addresses:
        sys.stdout.write(f"headrace listening on {ALL_ADDRESSES if address.startswith(':') else ''}{address}\n")
    sys.stdout.flush()

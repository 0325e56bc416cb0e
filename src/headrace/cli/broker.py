"""`headrace broker`: read the configs and run one broker in the foreground until a signal stops it."""

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
    help="Config file (.properties or .toml) with Kafka's config names.",
)
@click.option("--set", "assignments", metavar="NAME=VALUE", multiple=True, help="Set a config; may be repeated.")
@click.option("--data-dir", metavar="FOLDER", help="Data directory (log.dirs). [default: ./headrace-data]")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help=f"Address to listen on; port 0 selects a free port. [default: {BOOTSTRAP_DEFAULT}]",
)
def command(config_file: Path | None, assignments: tuple[str, ...], data_dir: str | None, listen: str | None) -> None:
    """Run a broker in the foreground.

    Configs are read from the config file, the environment (HEADRACE_LOG_RETENTION_MS sets log.retention.ms) and the
    command line; later sources override earlier ones. By default the broker listens on 127.0.0.1:9092 and stores its
    data in ./headrace-data. When it is ready, it prints `headrace listening on HOST:PORT` as the first line on stdout.
    SIGTERM or Ctrl-C stops it gracefully; a second signal stops it immediately.
    """
    sys.exit(_run(load_config(config_file, assignments, data_dir, listen)))


def load_config(
    config_file: Path | None, assignments: tuple[str, ...], data_dir: str | None, listen: str | None
) -> BrokerConfig:
    """Merge file, environment and command line; raise ConfigError or Misuse for invalid configs."""
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

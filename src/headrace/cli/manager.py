"""`headrace manager`: serve the HTTP API of a cluster."""

import click

from headrace.cli.failures import Failure
from headrace.cli.options import bootstrap_option

LISTEN_DEFAULT = "127.0.0.1:8092"


@click.command("manager")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=LISTEN_DEFAULT,
    show_default=True,
    help="Address to listen on; it must be one of this machine. Port 0 selects a free port.",
)
@click.option("--root-path", metavar="PATH", default="", help="Prefix that a proxy removes, such as /headrace.")
@click.option("--access-log/--no-access-log", default=True, show_default=True, help="Log every request as JSON.")
@bootstrap_option
def command(bootstrap: str, listen: str, root_path: str, access_log: bool) -> None:
    """Serve the HTTP API of a cluster: topics, records, groups.

    Without users it serves this machine alone. Any number of managers may serve one cluster.
    """
    try:
        from headrace.manager.server import run
        from headrace.manager.settings import ManagerSettings, parse_listen
    except ImportError as missing:
        raise Failure(f'the manager needs the package {missing.name}: pip install "headrace[manager]"') from None
    host, port = parse_listen(listen)
    run(
        ManagerSettings(
            bootstrap=bootstrap, host=host, port=port, root_path=root_path.rstrip("/"), access_log=access_log
        )
    )

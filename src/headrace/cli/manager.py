"""`headrace manager`: serve the HTTP API of a cluster, and keep its users."""

import click

from headrace.cli.failures import Failure
from headrace.cli.group import CommandGroup
from headrace.cli.manager_users import users
from headrace.cli.options import bootstrap_option, catalog_option

LISTEN_DEFAULT = "127.0.0.1:8092"


@click.group("manager", cls=CommandGroup, invoke_without_command=True)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=LISTEN_DEFAULT,
    show_default=True,
    help="Address to listen on. One of another machine's reach needs users and TLS. Port 0 selects a free port.",
)
@click.option("--tls-cert", metavar="FILE", help="Certificate chain of the manager, in PEM.")
@click.option("--tls-key", metavar="FILE", help="Private key of the certificate.")
@click.option("--tls-ca", metavar="FILE", help="Certificates by which it recognises other managers. [default: system]")
@click.option(
    "--behind-proxy",
    "proxies",
    metavar="ADDRESS",
    multiple=True,
    help="Address of a proxy that does TLS, whose forwarded headers are believed; may be repeated.",
)
@click.option("--url", metavar="URL", help="Address under which clients and other managers reach this one.")
@click.option("--root-path", metavar="PATH", default="", help="Prefix that a proxy removes, such as /headrace.")
@click.option("--access-log/--no-access-log", default=True, show_default=True, help="Log every request as JSON.")
@catalog_option
@bootstrap_option
@click.pass_context
def command(
    ctx: click.Context,
    bootstrap: str,
    catalog: str,
    listen: str,
    tls_cert: str | None,
    tls_key: str | None,
    tls_ca: str | None,
    proxies: tuple[str, ...],
    url: str | None,
    root_path: str,
    access_log: bool,
) -> None:
    """Serve the HTTP API of a cluster: topics, records, groups.

    Without users it serves this machine alone. Any number of managers may serve one cluster and share a catalog.
    """
    if ctx.invoked_subcommand is not None:
        return
    try:
        from headrace.manager.server import run
        from headrace.manager.settings import ManagerSettings, parse_listen, parse_proxies, parse_url
    except ImportError as missing:
        raise Failure(f'the manager needs the package {missing.name}: pip install "headrace[manager]"') from None
    host, port = parse_listen(listen)
    run(
        ManagerSettings(
            bootstrap=bootstrap,
            host=host,
            port=port,
            root_path=root_path.rstrip("/"),
            access_log=access_log,
            catalog=catalog,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_ca=tls_ca,
            proxies=parse_proxies(proxies),
            url=parse_url(url),
        )
    )


command.add_command(users)

"""`headrace tls`: certificates for development and tests."""

from pathlib import Path

import click

from headrace.cli.failures import Failure
from headrace.cli.group import CommandGroup

CLIENT_DEFAULT = "client"
DAYS_DEFAULT = 365


@click.group("tls", cls=CommandGroup)
def command() -> None:
    """Make certificates for a cluster with TLS."""


@command.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="Host name or address of the broker, besides localhost; may be repeated.",
)
@click.option(
    "--client",
    "clients",
    metavar="NAME",
    multiple=True,
    help=f"Name of a client that gets a certificate; may be repeated. [default: {CLIENT_DEFAULT}]",
)
@click.option(
    "--days", type=click.IntRange(1, 3_650), default=DAYS_DEFAULT, show_default=True, help="Days of validity."
)
@click.option(
    "--renew", "is_renewal", is_flag=True, help="Replace the certificates of the broker and of these clients."
)
def init(folder: Path, hosts: tuple[str, ...], clients: tuple[str, ...], days: int, is_renewal: bool) -> None:
    """Make a certificate authority for development, with certificates of a broker and of clients.

    DIR gets ca.pem (the certificate that both sides trust), ca.key, broker.pem for brokers, and NAME.pem and NAME.key
    for each client. Run it again to add clients: the authority stays, and so do certificates without --renew. The keys
    have no passwords, and the authority is on the same disk: do not use it for production.
    """
    try:
        from headrace.operations.development_ca import init_authority
    except ImportError:
        raise Failure('certificates need a package: pip install "headrace[auth]"') from None
    issued = init_authority(folder, hosts=hosts, clients=clients or (CLIENT_DEFAULT,), days=days, is_renewal=is_renewal)
    for certificate in issued:
        click.echo(f"{' and '.join(map(str, certificate.files))}: {certificate.name}")
    if not issued:
        click.echo("every certificate exists already; --renew replaces them, --client NAME adds one")
        return
    click.echo(
        f"""
a broker with TLS that asks clients for a certificate:

  headrace broker --set listeners=SSL://127.0.0.1:9093 --set ssl.keystore.location={folder / "broker.pem"} \\
    --set ssl.truststore.location={folder / "ca.pem"} --set ssl.client.auth=required

a client of it (librdkafka's names; Java needs ssl.keystore.type=PEM and ssl.truststore.type=PEM):

  security.protocol=SSL
  ssl.ca.location={folder / "ca.pem"}
  ssl.certificate.location={folder / f"{(clients or (CLIENT_DEFAULT,))[0]}.pem"}
  ssl.key.location={folder / f"{(clients or (CLIENT_DEFAULT,))[0]}.key"}"""
    )

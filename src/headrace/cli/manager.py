"""`headrace manager`: serve the HTTP API of a cluster, and keep its users."""

from typing import IO

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.failures import Failure, Misuse
from headrace.cli.group import CommandGroup
from headrace.cli.manager_users import users
from headrace.cli.options import catalog_option

LISTEN_DEFAULT = "127.0.0.1:8092"
SECRET_LENGTH_MAX = 4_096


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
@click.option("--oidc-issuer", metavar="URL", help="Identity provider at which users log in by OpenID Connect.")
@click.option("--oidc-client-id", metavar="ID", help="Identifier of the manager at the identity provider.")
@click.option("--oidc-secret-file", metavar="FILE", type=click.File(), help="File with the secret of that client.")
@click.option(
    "--oidc-user-claim", metavar="CLAIM", default="sub", show_default=True, help="Claim with the user's name."
)
@click.option("--oidc-role-claim", metavar="CLAIM", default="groups", show_default=True, help="Claim with the roles.")
@click.option(
    "--oidc-role",
    "oidc_roles",
    metavar="ROLE=VALUE",
    multiple=True,
    help="Role of users whose claim has this value, such as admin=operators; may be repeated.",
)
@click.option("--oidc-ca", metavar="FILE", help="Certificates by which the provider is recognised. [default: system]")
@catalog_option
@connection_options
@click.pass_context
def command(
    ctx: click.Context,
    bootstrap: str,
    properties: Properties,
    catalog: str,
    listen: str,
    tls_cert: str | None,
    tls_key: str | None,
    tls_ca: str | None,
    proxies: tuple[str, ...],
    url: str | None,
    root_path: str,
    access_log: bool,
    oidc_issuer: str | None,
    oidc_client_id: str | None,
    oidc_secret_file: IO[str] | None,
    oidc_user_claim: str,
    oidc_role_claim: str,
    oidc_roles: tuple[str, ...],
    oidc_ca: str | None,
) -> None:
    """Serve the HTTP API of a cluster: topics, records, groups.

    Without users it serves this machine alone. Any number of managers may serve one cluster and share a catalog.
    """
    if ctx.invoked_subcommand is not None:
        return
    try:
        from headrace.manager.access.identity_provider import ProviderSettings, check_provider, parse_roles
        from headrace.manager.cluster_address import ClusterAddress, check_address
        from headrace.manager.server import run
        from headrace.manager.settings import ManagerSettings, parse_listen, parse_proxies, parse_url
    except ImportError as missing:
        raise Failure(f'the manager needs the package {missing.name}: pip install "headrace[manager]"') from None
    cluster = ClusterAddress(bootstrap, properties)
    check_address(cluster)
    host, port = parse_listen(listen)
    provider = None
    if oidc_issuer is not None:
        if oidc_client_id is None:
            raise Misuse("--oidc-issuer needs --oidc-client-id")
        secret = None if oidc_secret_file is None else oidc_secret_file.readline(SECRET_LENGTH_MAX).strip()
        provider = ProviderSettings(
            issuer=oidc_issuer,
            client_id=oidc_client_id,
            client_secret=secret,
            user_claim=oidc_user_claim,
            role_claim=oidc_role_claim,
            roles=parse_roles(oidc_roles),
            ca_file=oidc_ca,
        )
        check_provider(provider)
    run(
        ManagerSettings(
            cluster=cluster,
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
            provider=provider,
        )
    )


command.add_command(users)

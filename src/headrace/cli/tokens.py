"""`headrace tokens`: delegation tokens, with which clients log in as their owners."""

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import Failure
from headrace.cli.group import CommandGroup
from headrace.cli.options import json_option
from headrace.client import Admin, DelegationToken

HOUR_MS = 3_600_000


@click.group("tokens", cls=CommandGroup)
def command() -> None:
    """Create, renew, expire and list delegation tokens."""


@command.command("create")
@click.option("--owner", metavar="PRINCIPAL", help="User whose token it is, such as User:alice. [default: the caller]")
@click.option(
    "--renewer", "renewers", metavar="PRINCIPAL", multiple=True, help="User who may renew it; may be repeated."
)
@click.option("--hours", type=click.FloatRange(min=0, min_open=True), help="Longest life. [default: the broker's]")
@click.option(
    "--password-file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="New file for the password, which only its owner may read. Without it, the command prints the password.",
)
@connection_options
@json_option
def create(
    bootstrap: str,
    properties: Properties,
    owner: str | None,
    renewers: tuple[str, ...],
    hours: float | None,
    password_file: Path | None,
    as_json: bool,
) -> None:
    """Create a token.

    Clients log in with it by SCRAM: the token's id is the user name, and sasl.tokenauth=true.
    """
    lifetime_ms = None if hours is None else max(1, int(hours * HOUR_MS))
    with Admin(bootstrap, **properties) as admin:
        token = admin.create_delegation_token(owner, renewers=renewers, lifetime_ms=lifetime_ms)
    shown = None if password_file else token.password
    if password_file is not None:
        _write_secret(password_file, token.password)
    if as_json:
        print_json(_row(token) | ({} if shown is None else {"password": shown}))
        return
    click.echo(f"created token {token.token_id} of {token.owner}, which expires at {_time(token.expires_ms)}")
    click.echo(f"password: {shown}" if shown else f"password in {password_file}")


def _write_secret(path: Path, text: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise Failure(f"the token exists, but its password cannot be written to {path}: {error.strerror}") from None


@command.command("renew")
@click.argument("token_id")
@click.option("--hours", type=click.FloatRange(min=0, min_open=True), help="From now on. [default: the broker's]")
@connection_options
def renew(bootstrap: str, properties: Properties, token_id: str, hours: float | None) -> None:
    """Let a token expire later."""
    period_ms = None if hours is None else max(1, int(hours * HOUR_MS))
    with Admin(bootstrap, **properties) as admin:
        expires_ms = admin.renew_delegation_token(_proof(admin, token_id), period_ms=period_ms)
    click.echo(f"token {token_id} expires at {_time(expires_ms)}")


@command.command("expire")
@click.argument("token_id")
@click.option("--hours", type=click.FloatRange(min=0, min_open=True), help="From now on. [default: at once]")
@connection_options
def expire(bootstrap: str, properties: Properties, token_id: str, hours: float | None) -> None:
    """Let a token expire at once, or sooner.

    Open connections last until they have to authenticate again.
    """
    period_ms = None if hours is None else max(1, int(hours * HOUR_MS))
    with Admin(bootstrap, **properties) as admin:
        expires_ms = admin.expire_delegation_token(_proof(admin, token_id), period_ms=period_ms)
    click.echo(f"removed token {token_id}" if hours is None else f"token {token_id} expires at {_time(expires_ms)}")


@command.command("list")
@click.option(
    "--owner", "owners", metavar="PRINCIPAL", multiple=True, help="Tokens of this user alone; may be repeated."
)
@connection_options
@json_option
def list_tokens(bootstrap: str, properties: Properties, owners: tuple[str, ...], as_json: bool) -> None:
    """List the tokens that the caller may see, without their passwords."""
    with Admin(bootstrap, **properties) as admin:
        found = admin.delegation_tokens(owners or None)
    found = tuple(sorted(found, key=lambda token: (token.owner, token.expires_ms)))
    if as_json:
        print_json([_row(token) for token in found])
        return
    print_table(
        ("token", "owner", "requester", "renewers", "expires", "ends"),
        map(_cells, found),
        empty="no tokens: headrace tokens create makes one",
    )


def _cells(token: DelegationToken) -> tuple[str, ...]:
    names = (token.token_id, token.owner, token.requester, " ".join(token.renewers))
    return (*names, _time(token.expires_ms), _time(token.max_ms))


def _proof(admin: Admin, token_id: str) -> bytes:
    for token in admin.delegation_tokens():
        if token.token_id == token_id:
            return token.proof
    raise Failure(f'there is no token "{token_id}" that you may see: headrace tokens list shows them')


def _row(token: DelegationToken) -> dict[str, object]:
    return {
        "token": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "created": _time(token.issued_ms),
        "expires": _time(token.expires_ms),
        "ends": _time(token.max_ms),
    }


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="seconds")

"""`headrace users`: the users that authenticate by SCRAM."""

from pathlib import Path

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import Failure
from headrace.cli.group import CommandGroup
from headrace.cli.options import json_option
from headrace.cli.outcomes import fail_on_errors, named
from headrace.client import Admin, NewScramUser, ScramMechanism
from headrace.client.types import Outcome
from headrace.model.errors import ErrorCode

MECHANISMS = {mechanism.name.replace("_", "-"): mechanism for mechanism in ScramMechanism}
PASSWORD_BYTES_MAX = 4096


@click.group("users", cls=CommandGroup)
def command() -> None:
    """Add, list and remove users that authenticate by SCRAM."""


@command.command("add")
@click.argument("name")
@click.option(
    "--password-file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File whose first line is the password. Without it, the command asks for the password.",
)
@click.option(
    "--mechanism",
    "mechanisms",
    type=click.Choice(list(MECHANISMS)),
    multiple=True,
    help="SCRAM mechanism; may be repeated. [default: both]",
)
@connection_options
def add(
    bootstrap: str, properties: Properties, name: str, password_file: Path | None, mechanisms: tuple[str, ...]
) -> None:
    """Add a user, or change its password.

    The password does not leave this machine: the cluster stores salted keys that verify it.
    """
    password = _password(password_file)
    added = [
        NewScramUser(name=name, password=password, mechanism=MECHANISMS[label]) for label in mechanisms or MECHANISMS
    ]
    with Admin(bootstrap, **properties) as admin:
        fail_on_errors(named(admin.alter_scram_users(added), "user"), "cannot add")
    click.echo(f'added user "{name}" with {", ".join(mechanisms or MECHANISMS)}')


def _password(file: Path | None) -> str:
    if file is None:
        password: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        return password
    try:
        with file.open("rb") as opened:
            first = opened.read(PASSWORD_BYTES_MAX).split(b"\n", 1)[0].rstrip(b"\r").decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"cannot read a password from {file}: {error}") from None
    if not first:
        raise Failure(f"the first line of {file} is empty: write the password there")
    return first


@command.command("list")
@connection_options
@json_option
def list_users(bootstrap: str, properties: Properties, as_json: bool) -> None:
    """List users with their mechanisms."""
    with Admin(bootstrap, **properties) as admin:
        found = admin.scram_users()
    rows = [
        {"user": name, "mechanism": each.mechanism.name.replace("_", "-"), "iterations": each.iterations}
        for name, credentials in sorted(found.items())
        for each in credentials
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(
            ("user", "mechanism", "iterations"),
            (tuple(row.values()) for row in rows),
            right=("iterations",),
            empty="no users: headrace users add NAME adds one",
        )


@command.command("remove")
@click.argument("name")
@click.option(
    "--mechanism",
    "mechanisms",
    type=click.Choice(list(MECHANISMS)),
    multiple=True,
    help="SCRAM mechanism; may be repeated. [default: all of the user]",
)
@connection_options
def remove(bootstrap: str, properties: Properties, name: str, mechanisms: tuple[str, ...]) -> None:
    """Remove a user.

    Its open connections last until they have to authenticate again (connections.max.reauth.ms).
    """
    with Admin(bootstrap, **properties) as admin:
        wanted = [MECHANISMS[label] for label in mechanisms]
        if not wanted:
            wanted = [each.mechanism for each in admin.scram_users([name]).get(name, ())]
        if not wanted:
            missing = {name: Outcome(ErrorCode.RESOURCE_NOT_FOUND, "it has no SCRAM credentials")}
            fail_on_errors(named(missing, "user"), "cannot remove")
        outcomes = admin.alter_scram_users(deleted=[(name, mechanism) for mechanism in wanted])
        fail_on_errors(named(outcomes, "user"), "cannot remove")
    click.echo(f'removed user "{name}"')

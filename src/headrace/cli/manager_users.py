"""`headrace manager users`: the users of the manager, changed in its catalog."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import click

from headrace.cli.console import clean, print_table, say
from headrace.cli.failures import Failure
from headrace.cli.group import CommandGroup
from headrace.cli.options import catalog_option

if TYPE_CHECKING:
    from headrace.manager.catalog.command_line import CatalogCommands

PASSWORD_LENGTH_MAX = 8_192
ROLES = ("viewer", "editor", "admin")

password_option = click.option(
    "--password-file",
    metavar="FILE",
    type=click.File(),
    help="File with the password in its first line; - is standard input. Without it the command prompts.",
)
name_argument = click.argument("name")


@click.group("users", cls=CommandGroup)
def users() -> None:
    """Add, list and remove users of the manager, and create their tokens.

    These are the manager's own users, not those of the cluster. A running manager follows within a second.
    """


@contextmanager
def opened(catalog: str) -> "Iterator[CatalogCommands]":
    try:
        from headrace.manager.catalog.command_line import catalog_commands
    except ImportError as missing:
        raise Failure(f'the manager needs the package {missing.name}: pip install "headrace[manager]"') from None
    with catalog_commands(catalog) as commands:
        yield commands


@users.command("list")
@catalog_option
def list_users(catalog: str) -> None:
    """List the users with their roles."""
    with opened(catalog) as commands:
        from headrace.manager.access.users import listed_users

        found = commands.read(listed_users)
    columns = ("user", "role", "tokens", "sessions")
    print_table(columns, ((user.name, user.role, user.tokens, user.sessions) for user in found))


@users.command("add")
@name_argument
@click.option("--role", type=click.Choice(ROLES), default="viewer", show_default=True, help="What the user may do.")
@password_option
@catalog_option
def add(name: str, role: str, password_file: IO[str] | None, catalog: str) -> None:
    """Add a user. As soon as there is one, the manager serves only requests of users."""
    with opened(catalog) as commands:
        from headrace.manager.access.passwords import hashed
        from headrace.manager.access.users import add_user
        from headrace.manager.catalog.engine import now_ms

        password = hashed(_password(password_file))
        commands.change(
            "users add", name, lambda connection: add_user(connection, name, role, password, now=now_ms(connection))
        )
    say(f"added {role} {clean(name)}")


@users.command("password")
@name_argument
@password_option
@catalog_option
def set_password(name: str, password_file: IO[str] | None, catalog: str) -> None:
    """Change the password of a user, which ends the user's sessions."""
    with opened(catalog) as commands:
        from headrace.manager.access import users as known
        from headrace.manager.access.passwords import hashed

        commands.read(lambda connection: known.existing_user(connection, name))
        password = hashed(_password(password_file))
        commands.change("users password", name, lambda connection: known.set_password(connection, name, password))
    say(f"changed the password of {clean(name)}")


@users.command("remove")
@name_argument
@catalog_option
def remove(name: str, catalog: str) -> None:
    """Remove a user with all sessions and tokens."""
    with opened(catalog) as commands:
        from headrace.manager.access.users import remove_user

        commands.change("users remove", name, lambda connection: remove_user(connection, name))
    say(f"removed {clean(name)}")


@users.command("token")
@name_argument
@click.option("--description", metavar="TEXT", default="", help="What the token is for.")
@click.option("--days", type=click.IntRange(1, 3650), help="Days until it expires. [default: never]")
@catalog_option
def token(name: str, description: str, days: int | None, catalog: str) -> None:
    """Create a bearer token for scripts, and print it. It has the role of its user."""
    with opened(catalog) as commands:
        from headrace.manager.access.users import create_token
        from headrace.manager.catalog.engine import now_ms

        _, secret = commands.change(
            "users token",
            name,
            lambda connection: create_token(connection, name, description, days, now=now_ms(connection)),
        )
    click.echo(secret)


def _password(file: IO[str] | None) -> str:
    """Read a password; never from an argument, because other users of the machine see those."""
    if file is None:
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    password = file.readline(PASSWORD_LENGTH_MAX).rstrip("\r\n")
    if not password:
        raise Failure("the file has no password in its first line")
    return password

"""`headrace profile`: named clusters with their addresses and security settings."""

from pathlib import Path

import click

from headrace.cli.connection import BOOTSTRAP, profile_file, properties_option
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import Misuse
from headrace.cli.group import CommandGroup
from headrace.cli.options import json_option
from headrace.operations.profiles import check_profile, read_profiles, shown, write_profiles

_PROTOCOL, _MECHANISM, _USER, _PASSWORD = "security.protocol", "sasl.mechanism", "sasl.username", "sasl.password"
_FILES = ".location"
"""Ending of the properties whose values are names of files."""


@click.group("profile", cls=CommandGroup)
def command() -> None:
    """Add, list, choose and remove profiles of clusters: addresses and security settings."""


@command.command("add")
@click.argument("name")
@click.option("--bootstrap", metavar="HOST:PORT[,...]", required=True, help="Bootstrap servers of the cluster.")
@properties_option
def add(name: str, bootstrap: str, properties: dict[str, str]) -> None:
    """Add a profile, or replace the one of that name.

    With SASL and a user, but without sasl.password, the command asks for the password. The file of profiles can be read
    by its owner only. The first profile is put into use.
    """
    if BOOTSTRAP in properties:
        raise Misuse(f"give the address by --bootstrap, and leave out -X {BOOTSTRAP}")
    found = {BOOTSTRAP: bootstrap} | {name: _absolute(name, value) for name, value in properties.items()}
    check_profile(name, found)
    if found.get(_USER) and _PASSWORD not in found:
        found[_PASSWORD] = click.prompt("Password", hide_input=True, err=True)
    file = profile_file()
    before = read_profiles(file)
    after = before.with_profile(name, found)
    write_profiles(file, after if before.properties else after.using(name))
    click.echo(f'profile "{name}" is in {file}')


def _absolute(name: str, value: str) -> str:
    """Return the value with the absolute path of the file that it names: a profile is used in any folder."""
    if value.startswith("@"):
        return f"@{Path(value[1:]).resolve()}"
    return str(Path(value).resolve()) if name.replace("_", ".").endswith(_FILES) else value


@command.command("list")
@json_option
def list_profiles(as_json: bool) -> None:
    """List profiles without their secrets."""
    found = read_profiles(profile_file())
    if as_json:
        print_json(
            [
                {"profile": name, "in_use": name == found.current, "properties": shown(properties)}
                for name, properties in sorted(found.properties.items())
            ]
        )
        return
    print_table(
        ("profile", "in use", "bootstrap", "protocol", "mechanism", "user"),
        (
            (
                name,
                "yes" if name == found.current else "",
                properties.get(BOOTSTRAP, ""),
                properties.get(_PROTOCOL, "PLAINTEXT"),
                properties.get(_MECHANISM, ""),
                properties.get(_USER, ""),
            )
            for name, properties in sorted(found.properties.items())
        ),
        empty="no profiles: headrace profile add NAME --bootstrap HOST:PORT adds one",
    )


@command.command("use")
@click.argument("name", required=False)
@click.option("--none", "is_none", is_flag=True, help="Use no profile.")
def use(name: str | None, is_none: bool) -> None:
    """Choose the profile for commands that name neither a cluster nor a profile."""
    if (name is None) is not is_none:
        raise click.UsageError("give the name of a profile, or --none")
    file = profile_file()
    write_profiles(file, read_profiles(file).using(name))
    click.echo("no profile is in use" if name is None else f'profile "{name}" is in use')


@command.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Remove a profile."""
    file = profile_file()
    write_profiles(file, read_profiles(file).without(name))
    click.echo(f'removed profile "{name}"')

"""The connection of a command to a cluster: --bootstrap, --profile and -X, and which of them counts."""

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from headrace.cli.options import BOOTSTRAP_DEFAULT, DEFAULT_PORT, assignments
from headrace.model.secrets import is_secret_name

BOOTSTRAP_VARIABLE = "HEADRACE_BOOTSTRAP"
PROFILE_VARIABLE = "HEADRACE_PROFILE"
PROFILE_FILE_VARIABLE = "HEADRACE_PROFILE_FILE"
PROPERTY_FILE_BYTES_MAX = 1 << 20
BOOTSTRAP = "bootstrap.servers"

Properties = dict[str, Any]
"""Settings of the client by their names in Python, without the address."""
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class ClusterConnection(NamedTuple):
    bootstrap: str
    properties: Properties
    is_chosen: bool
    """True if the command line or the environment names the cluster."""


def connection_options(function: Decorated) -> Decorated:
    """Add the three options; the command gets `bootstrap`, an address, and `properties` for the client."""

    @wraps(function)
    def resolved(*args: Any, **given: Any) -> Any:
        context = click.get_current_context()
        found = connection_of(context)
        _warn_of_arguments(context)
        del given["profile"]
        return function(*args, **{**given, "bootstrap": found.bootstrap, "properties": found.properties})

    for option in (properties_option, _profile_option, bootstrap_option):
        resolved = option(resolved)
    return resolved  # type: ignore[return-value]  # the same but for the parameters that click passes


def bootstrap_option(function: Decorated) -> Decorated:
    return click.option(
        "--bootstrap",
        metavar="HOST:PORT[,...]",
        default=BOOTSTRAP_DEFAULT,
        envvar=BOOTSTRAP_VARIABLE,
        show_default=True,
        show_envvar=True,
        help=f"Bootstrap servers; the default port is {DEFAULT_PORT}.",
    )(function)


def _profile_option(function: Decorated) -> Decorated:
    return click.option(
        "--profile",
        metavar="NAME",
        envvar=PROFILE_VARIABLE,
        show_envvar=True,
        shell_complete=_complete_profiles,
        help="Profile with the address and the security settings of a cluster (headrace profile add).",
    )(function)


def properties_option(function: Decorated) -> Decorated:
    return click.option(
        "-X",
        "properties",
        metavar="NAME=VALUE",
        multiple=True,
        callback=lambda _context, _parameter, texts: assignments(texts, "-X"),
        help="Client property with Kafka's name, such as security.protocol=SASL_SSL; may be repeated. NAME=@FILE reads "
        "the value from a file.",
    )(function)


def connection_of(context: click.Context, *, default: str | None = None) -> ClusterConnection:
    """Return the connection that the options of a command, the environment and the profiles determine.

    The first of command line, environment and profile in use that names a cluster decides on it. So the password of
    a profile does not go to an address that something else named. `default` is an address from a file, which goes
    before the profile in use.
    """
    given: str = context.params.get("bootstrap") or BOOTSTRAP_DEFAULT  # some are missing while a shell completes
    overrides: Mapping[str, str] = context.params.get("properties") or {}
    sources = {name: context.get_parameter_source(name) for name in ("bootstrap", "profile")}
    for source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
        named = [name for name, found in sources.items() if found is source]
        if named:
            profile = _properties_of(context.params["profile"]) if "profile" in named else {}
            address = given if "bootstrap" in named else profile[BOOTSTRAP]
            return ClusterConnection(address, client_settings({**profile, **overrides}), is_chosen=True)
    if default is not None:
        return ClusterConnection(default, client_settings(overrides), is_chosen=True)
    profile = _properties_in_use()
    return ClusterConnection(
        profile.get(BOOTSTRAP, given), client_settings({**profile, **overrides}), is_chosen=bool(profile)
    )


def shared_by_clients(properties: Properties) -> Properties:
    """Return those that every kind of client has, for the Admin of a command that also produces or consumes."""
    from headrace.client.config import AdminConfig

    known = {each.name for each in fields(AdminConfig)}
    return {name: value for name, value in properties.items() if AdminConfig.field_name(name) in known}


def client_settings(properties: Mapping[str, str]) -> Properties:
    """Return properties by their names in Python, with the contents of the files that `@` names."""
    return {
        name.replace(".", "_"): _content(name, value[1:]) if value.startswith("@") else value
        for name, value in properties.items()
        if name != BOOTSTRAP
    }


def _content(name: str, file: str) -> str:
    try:
        with Path(file).open(encoding="utf-8") as opened:
            return opened.read(PROPERTY_FILE_BYTES_MAX).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"-X {name}: cannot read {file}: {error}") from None


def _warn_of_arguments(context: click.Context) -> None:
    for name, value in context.params["properties"].items():
        if is_secret_name(name) and not value.startswith("@"):
            click.echo(
                f"headrace: warning: other users of this machine can read {name} in the list of processes: write "
                f"-X {name}=@FILE, or use a profile",
                err=True,
            )


def profile_file() -> Path:
    from headrace.operations.profiles import default_file

    chosen = os.environ.get(PROFILE_FILE_VARIABLE)
    return Path(chosen) if chosen else default_file(os.environ)


def _properties_of(name: str) -> Mapping[str, str]:
    from headrace.operations.profiles import check_profile, read_profiles

    file = profile_file()
    properties = read_profiles(file).find(name)
    check_profile(name, properties)
    _warn_of_readers(file)
    return properties


def _properties_in_use() -> Mapping[str, str]:
    """Return the properties of the profile in use; none without one."""
    file = profile_file()
    if not file.exists():  # the usual case, which imports nothing more
        return {}
    from headrace.operations.profiles import read_profiles

    current = read_profiles(file).current
    return {} if current is None else _properties_of(current)


def _warn_of_readers(file: Path) -> None:
    from headrace.operations.profiles import others_may_read

    if others_may_read(file):
        click.echo(f"headrace: warning: other users can read {file}, which has secrets: chmod 600 {file}", err=True)


def _complete_profiles(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from headrace.operations.profiles import ProfileError, read_profiles

    try:
        return sorted(name for name in read_profiles(profile_file()).properties if name.startswith(incomplete))
    except ProfileError:
        return []

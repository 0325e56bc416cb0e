"""`headrace quotas`: limits of users, client ids and addresses."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import print_json, print_table
from headrace.cli.group import CommandGroup
from headrace.cli.options import json_option
from headrace.cli.outcomes import fail_on_errors
from headrace.client import Admin, EntityQuotas
from headrace.core.quotas.entities import CLIENT_ID, CLIENT_KEYS, ENTITY_TYPES, IP, IP_KEYS, USER

KEYS = (*CLIENT_KEYS, *IP_KEYS)
DEFAULT_NAME = "(default)"

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@click.group("quotas", cls=CommandGroup)
def command() -> None:
    """Set, list and remove quotas of users, client ids and addresses."""


def entity_options(function: Decorated) -> Decorated:
    for option in (
        click.option(
            "--default",
            "defaults",
            type=click.Choice(ENTITY_TYPES),
            multiple=True,
            help="The default for every name of this type without a quota of its own; may be repeated.",
        ),
        click.option("--ip", metavar="ADDRESS", help="An address of clients."),
        click.option("--client-id", metavar="ID", help="A client id."),
        click.option("--user", metavar="NAME", help="A user, without the type: alice, not User:alice."),
    ):
        function = option(function)
    return function


def _entity(
    user: str | None, client_id: str | None, ip: str | None, defaults: tuple[str, ...]
) -> dict[str, str | None]:
    """Return the names by type that the options give."""
    entity: dict[str, str | None] = dict.fromkeys(defaults)
    for kind, name in ((USER, user), (CLIENT_ID, client_id), (IP, ip)):
        if name is not None and kind in entity:
            raise click.UsageError(f"give --{kind} or --default {kind}, not both")
        if name is not None:
            entity[kind] = name
    return entity


def _named_entity(
    user: str | None, client_id: str | None, ip: str | None, defaults: tuple[str, ...]
) -> dict[str, str | None]:
    entity = _entity(user, client_id, ip, defaults)
    if not entity:
        raise click.UsageError("say whose quotas: --user, --client-id, both, --ip, or --default TYPE")
    return entity


def _limits(texts: tuple[str, ...]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or key not in KEYS:
            raise click.UsageError(f'"{text}" is no quota: give KEY=VALUE, KEY being {", ".join(KEYS)}')
        try:
            limits[key] = float(value)
        except ValueError:
            raise click.UsageError(f'"{value}" is no number: {key} is a rate per second') from None
    return limits


@command.command("set")
@click.argument("quotas", metavar="KEY=VALUE...", nargs=-1, required=True)
@entity_options
@connection_options
def set_quotas(
    bootstrap: str,
    properties: Properties,
    quotas: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    ip: str | None,
    defaults: tuple[str, ...],
) -> None:
    """Limit what clients may use of each broker.

    Of users and client ids: producer_byte_rate and consumer_byte_rate in bytes per second, request_percentage in
    percent of the time of a broker's loop, and controller_mutation_rate in partitions per second. Of addresses:
    connection_creation_rate in connections per second.
    """
    entity = _named_entity(user, client_id, ip, defaults)
    limits = _limits(quotas)
    _alter(bootstrap, properties, entity, limits, "cannot set quotas of")
    for key, limit in limits.items():
        click.echo(f"{key}={limit:.15g} for {_text(entity)}")


@command.command("list")
@entity_options
@connection_options
@json_option
def list_quotas(
    bootstrap: str,
    properties: Properties,
    user: str | None,
    client_id: str | None,
    ip: str | None,
    defaults: tuple[str, ...],
    as_json: bool,
) -> None:
    """List quotas: all of them, or those of entities with these names."""
    with Admin(bootstrap, **properties) as admin:
        found = admin.client_quotas(_entity(user, client_id, ip, defaults))
    ordered = sorted(found, key=lambda each: [(kind, name or "") for kind, name in sorted(each.entity.items())])
    if as_json:
        print_json([{"entity": dict(each.entity), "quotas": dict(each.limits)} for each in ordered])
        return
    rows = [
        (*(_cell(each.entity, kind) for kind in ENTITY_TYPES), key, f"{limit:.15g}")
        for each in ordered
        for key, limit in sorted(each.limits.items())
    ]
    print_table((*ENTITY_TYPES, "quota", "limit"), rows, empty="no quotas: headrace quotas set sets one")


@command.command("remove")
@click.argument("keys", metavar="[KEY]...", nargs=-1, type=click.Choice(KEYS))
@entity_options
@connection_options
def remove(
    bootstrap: str,
    properties: Properties,
    keys: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    ip: str | None,
    defaults: tuple[str, ...],
) -> None:
    """Remove quotas of an entity: some of them, or all."""
    entity = _named_entity(user, client_id, ip, defaults)
    with Admin(bootstrap, **properties) as admin:
        found = admin.client_quotas(entity, strict=True)
    present = [key for each in found for key in each.limits if not keys or key in keys]
    if not present:
        click.echo("no quota matches: headrace quotas list shows all")
        return
    _alter(bootstrap, properties, entity, dict.fromkeys(present), "cannot remove quotas of")
    for key in present:
        click.echo(f"removed {key} of {_text(entity)}")


def _alter(
    bootstrap: str,
    properties: Properties,
    entity: Mapping[str, str | None],
    limits: Mapping[str, float | None],
    doing: str,
) -> None:
    with Admin(bootstrap, **properties) as admin:
        (outcome,) = admin.alter_client_quotas([EntityQuotas(entity=entity, limits=limits)])
    fail_on_errors({_text(entity): outcome}, doing)


def _cell(entity: Mapping[str, str | None], kind: str) -> str:
    if kind not in entity:
        return ""
    return entity[kind] or DEFAULT_NAME


def _text(entity: Mapping[str, str | None]) -> str:
    return " and ".join(
        f"every other {kind}" if name is None else f'{kind} "{name}"' for kind, name in sorted(entity.items())
    )

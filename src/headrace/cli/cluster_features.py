"""`headrace cluster features`: the finalized levels of the features of a cluster (KIP-584)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import print_json, print_table
from headrace.cli.group import CommandGroup
from headrace.cli.options import assignments, complete_features, confirm, json_option, yes_option

if TYPE_CHECKING:
    from headrace.client import FeatureDescription

_levels_argument = click.argument(
    "levels", metavar="FEATURE=LEVEL...", nargs=-1, required=True, shell_complete=complete_features
)
_dry_run_option = click.option("--dry-run", is_flag=True, help="Check the change without making it.")


@click.group("features", cls=CommandGroup)
def features() -> None:
    """List, raise and lower the feature levels of a cluster.

    A new release may bring higher levels. They are used once they are finalized here, after every broker runs it.
    """


@features.command("list")
@connection_options
@json_option
def list_features(bootstrap: str, properties: Properties, as_json: bool) -> None:
    """List the features with their levels, and those that the broker supports."""
    from headrace.client import Admin

    with Admin(bootstrap, **properties) as admin:
        found = admin.features()
    _print(found, as_json=as_json)


@features.command("upgrade")
@_levels_argument
@_dry_run_option
@connection_options
@json_option
def upgrade(bootstrap: str, properties: Properties, levels: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Raise feature levels, all of them or none. Every registered broker must support them."""
    _change(bootstrap, properties, levels, allow_downgrade=False, dry_run=dry_run, as_json=as_json)


@features.command("downgrade")
@_levels_argument
@_dry_run_option
@connection_options
@yes_option
@json_option
def downgrade(
    bootstrap: str, properties: Properties, levels: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Lower feature levels, all of them or none; level 0 turns a feature off.

    Clients that use what a lower level lacks get errors.
    """
    if not yes and not dry_run:
        confirm(f"lower {', '.join(levels)}?")
    _change(bootstrap, properties, levels, allow_downgrade=True, dry_run=dry_run, as_json=as_json)


def _change(
    bootstrap: str,
    properties: Properties,
    texts: Sequence[str],
    *,
    allow_downgrade: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    from headrace.client import Admin

    wanted = {name: _level(name, text) for name, text in assignments(texts, "feature").items()}
    with Admin(bootstrap, **properties) as admin:
        admin.update_features(wanted, allow_downgrade=allow_downgrade, validate_only=dry_run)
        found = admin.features()
    if dry_run and not as_json:
        click.echo("the change is possible; nothing was changed")
    else:
        _print(found, as_json=as_json)


def _level(name: str, text: str) -> int:
    if not text.isdecimal():
        raise click.UsageError(f'level "{text}" of {name} is not a number: headrace cluster features list shows levels')
    return int(text)


def _print(found: "Sequence[FeatureDescription]", *, as_json: bool) -> None:
    if as_json:
        print_json([feature._asdict() for feature in found])
        return
    print_table(
        ("feature", "level", "supported"),
        ((feature.name, feature.level, f"{feature.level_min} to {feature.level_max}") for feature in found),
        right=("level",),
    )

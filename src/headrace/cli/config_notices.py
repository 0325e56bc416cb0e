"""Notices on stderr about configs that a broker took and does not obey in this release."""

from collections.abc import Mapping

import click

from headrace.model.configs import ConfigTable


def tell_without_effect(table: ConfigTable, texts: Mapping[str, str | None]) -> None:
    """Called once the broker has accepted the texts; names that this release does not know are passed over."""
    known = {name: text for name, text in texts.items() if name in table and text is not None}
    for name in table.without_effect(known):
        click.echo(f'headrace: config "{name}" is kept and has no effect in this release', err=True)

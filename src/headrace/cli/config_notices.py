"""Notices on stderr about configs that a broker accepted and that have no effect in this release."""

from collections.abc import Mapping

import click

from headrace.model.configs import ConfigTable


def tell_without_effect(table: ConfigTable, texts: Mapping[str, str | None]) -> None:
    """Print the notices for configs that the broker has accepted. Names unknown to this release are skipped."""
    known = {name: text for name, text in texts.items() if name in table and text is not None}
    for name in table.without_effect(known):
        click.echo(f'headrace: config "{name}" is stored but has no effect in this release', err=True)

"""`headrace catalog`: back up and restore the database of the managers."""

from pathlib import Path

import click

from headrace.cli.console import say
from headrace.cli.failures import unwritable
from headrace.cli.group import CommandGroup
from headrace.cli.manager_users import opened
from headrace.cli.options import catalog_option
from headrace.operations.amounts import count_text

backup_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.group("catalog", cls=CommandGroup)
def command() -> None:
    """Back up and restore the catalog of the managers.

    A backup of SQLite can be restored to PostgreSQL, and the other way round.
    """


@command.command("backup")
@backup_file
@catalog_option
def backup(file: Path, catalog: str) -> None:
    """Write a backup to FILE while managers run. It has hashes of passwords."""
    with opened(catalog) as commands:
        from headrace.manager.catalog.backup import back_up

        try:
            count = commands.read(lambda connection: back_up(connection, file))
        except OSError as error:
            raise unwritable(file, error) from None
    say(f"wrote {count_text(count, 'row')} to {file}")


@command.command("restore")
@backup_file
@click.option("--replace", is_flag=True, help="Replace everything that the catalog has.")
@catalog_option
def restore(file: Path, replace: bool, catalog: str) -> None:
    """Restore a backup from FILE to an empty catalog. All sessions end; running managers follow at once."""
    with opened(catalog) as commands:
        from headrace.manager.catalog.backup import restore as restored

        count = commands.change(
            "catalog restore", str(file), lambda connection: restored(connection, file, replace=replace)
        )
    say(f"restored {count_text(count, 'row')}")

"""Migrations of the catalog, in a child process, because Alembic would stay in the memory of the manager."""

import subprocess
import sys
from pathlib import Path

from sqlalchemy import Engine, inspect, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from headrace.manager.catalog.engine import catalog_url, open_engine, shown
from headrace.manager.catalog.tables import REVISION
from headrace.manager.limits import MIGRATION_SECONDS_MAX
from headrace.operations.errors import OperationError

FOLDER = Path(__file__).with_name("migrations")


def prepare(url: URL) -> Engine:
    """Return an engine for the catalog, after bringing its tables to the newest revision."""
    engine = open_engine(url)
    try:
        if current_revision(engine) != REVISION:
            _migrate_in_child(url)
            engine.dispose()
    except SQLAlchemyError as error:
        raise OperationError(f"the catalog {shown(url)} cannot be used: {reason(error)}") from None
    return engine


def reason(error: SQLAlchemyError) -> str:
    """Return the first line of the database's own message."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def current_revision(engine: Engine) -> str | None:
    """Return the revision of the tables; None for an empty database."""
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _migrate_in_child(url: URL) -> None:
    given = url.render_as_string(hide_password=False)  # By stdin, because arguments are visible to other users.
    try:
        ran = subprocess.run(  # noqa: S603  (this interpreter, without arguments from outside)
            [sys.executable, "-m", __name__], input=given, text=True, capture_output=True, timeout=MIGRATION_SECONDS_MAX
        )
    except subprocess.TimeoutExpired:
        raise OperationError(
            f"the tables of the catalog {shown(url)} were not ready within {MIGRATION_SECONDS_MAX} s: another manager "
            "may be changing them; start again"
        ) from None
    if ran.returncode != 0:
        raise OperationError(f"the tables of the catalog {shown(url)} cannot be migrated: {ran.stderr.strip()}")


def migrate(url: URL) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["url"] = url
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise OperationError(f"{error}; it may have been written by a newer version: update headrace") from None
    except SQLAlchemyError as error:
        raise OperationError(reason(error)) from None


if __name__ == "__main__":
    try:
        migrate(catalog_url(sys.stdin.read()))
    except OperationError as wrong:
        sys.exit(str(wrong))

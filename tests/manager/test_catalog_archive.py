"""The settings of examples/manager at a real PostgreSQL: a restore to a moment, and the changes in the slot."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import yaml
from click.testing import CliRunner

from headrace.cli.main import cli
from tests.manager.keyed_load import awaited
from tests.manager.people import TeamOfUsers
from tests.manager.postgresql import PostgreSQLServer

pytestmark = pytest.mark.process

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "manager"
COMPOSE = yaml.safe_load((EXAMPLE / "compose.yaml").read_text())
SLOT = "SELECT data FROM pg_logical_slot_get_binary_changes('headrace_catalog', NULL, NULL, "
SLOT += "'proto_version', '1', 'publication_names', 'headrace_catalog')"


def settings() -> dict[str, str]:
    """Return the settings that the compose file gives PostgreSQL."""
    program, *options = COMPOSE["services"]["catalog"]["command"]
    assert program == "postgres"
    pairs = [option.removeprefix("-c").partition("=") for option in options]
    return {name: value for name, _, value in pairs}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQLServer]:
    running = PostgreSQLServer()
    try:
        archive = running.make_folder("archive")
        running.settings |= {name: value.replace("/archive", str(archive)) for name, value in settings().items()}
        running.start()
        yield running
    finally:
        running.remove()


def asked(server: PostgreSQLServer, text: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        cursor = connection.execute(text.encode())
        return cursor.fetchall() if cursor.description else []


def users(server: PostgreSQLServer) -> str:
    listed = CliRunner().invoke(cli, ["manager", "users", "list", "--catalog", server.url])
    assert listed.exit_code == 0, listed.output
    return listed.output


def test_the_catalog_is_restored_to_a_moment_and_its_changes_are_read(server: PostgreSQLServer) -> None:
    for statement in (EXAMPLE / "catalog.sql").read_text().split(";"):
        if statement.strip():
            asked(server, statement)
    base = server.make_folder("base")
    server.run("pg_basebackup", "-h", "127.0.0.1", "-p", str(server.port), "-U", "headrace", "-D", str(base))
    TeamOfUsers(server.url)  # After the base backup, so the restore has them from the archive.
    changes = b"".join(bytes(data) for (data,) in asked(server, SLOT))  # type: ignore[call-overload]
    assert b"users" in changes
    assert b"editor" in changes
    asked(server, "SELECT pg_create_restore_point('before the mistake')")
    asked(server, "DELETE FROM tokens")
    asked(server, "DELETE FROM users")
    assert b"D" in {bytes(data)[:1] for (data,) in asked(server, SLOT)}  # type: ignore[call-overload]
    assert "editor" not in users(server)
    ((last,),) = asked(server, "SELECT pg_walfile_name(pg_switch_wal())")
    awaited(lambda: (server.folder / "archive" / str(last)).exists())
    server.stop()

    recovery = base / "recovery.signal"
    recovery.touch()
    recovery.chmod(0o644)
    server.settings |= {
        "restore_command": f"cp {server.folder / 'archive'}/%f %p",
        "recovery_target_name": "before the mistake",
        "recovery_target_action": "promote",
    }
    server.start(base)
    awaited(lambda: asked(server, "SELECT pg_is_in_recovery()") == [(False,)])
    restored = users(server)
    assert "editor" in restored
    assert "admin" in restored


def test_the_container_has_what_the_test_gives_the_server() -> None:
    service = COMPOSE["services"]["catalog"]
    assert "./catalog.sql:/docker-entrypoint-initdb.d/catalog.sql:ro" in service["volumes"]
    assert service["ports"] == ["127.0.0.1:5432:5432"], "other machines do not reach it"
    assert {"data", "archive"} == COMPOSE["volumes"].keys()
    assert "/archive" in settings()["archive_command"]

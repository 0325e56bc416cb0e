"""Several managers that share a catalog in a real PostgreSQL: forwarding, and the loss of the lease's holder."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from click.testing import CliRunner
from sqlalchemy import text

from headrace.cli.main import cli
from headrace.manager.catalog.engine import catalog_url, now_ms, open_engine
from headrace.manager.catalog.lease import Instance, beat, require
from headrace.manager.catalog.migration import migrate
from headrace.manager.catalog.tables import metadata
from headrace.testing import EmbeddedBroker
from tests.manager.keyed_load import KeyedLoad, awaited
from tests.manager.manager_process import ManagerProcess
from tests.manager.people import TeamOfUsers
from tests.manager.postgresql import PostgreSQLServer

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQLServer]:
    running = PostgreSQLServer()
    try:
        running.start()
        yield running
    finally:
        running.remove()


@pytest.fixture(scope="module")
def managers(broker: EmbeddedBroker, server: PostgreSQLServer) -> Iterator[list[ManagerProcess]]:
    """Three managers, started together with an empty database, which one of them migrates."""
    running: list[ManagerProcess] = []
    with ExitStack() as stack, ThreadPoolExecutor(3) as threads:
        stack.callback(lambda: stop_all(running))
        running += threads.map(lambda _: ManagerProcess(broker.bootstrap_servers, "--catalog", server.url), range(3))
        yield running


@pytest.fixture(scope="module")
def people(managers: list[ManagerProcess], server: PostgreSQLServer) -> TeamOfUsers:
    team = TeamOfUsers(server.url)
    team.manager = managers[0]
    return team


def stop_all(managers: list[ManagerProcess]) -> None:
    for manager in managers:
        manager.__exit__(None, None, None)


def holder_among(managers: list[ManagerProcess], people: TeamOfUsers) -> ManagerProcess | None:
    asked = next(manager for manager in managers if manager.process.poll() is None)
    listed = asked.call("GET", "/v1/managers", headers=people.bearer("viewer"))
    urls = [each["url"] for each in listed if each["holds_lease"]]
    return next((manager for manager in managers if [manager.url] == urls), None)


def add_user(manager: ManagerProcess, people: TeamOfUsers, name: str) -> httpx.Response:
    wanted = {"name": name, "role": "viewer", "password": f"the password of {name}"}
    return manager.http.post("/v1/access/users", json=wanted, headers=people.bearer("admin"))


def names_of(manager: ManagerProcess, people: TeamOfUsers) -> set[str]:
    return {each["name"] for each in manager.call("GET", "/v1/access/users", headers=people.bearer("admin"))}


def test_managers_that_start_together_migrate_an_empty_database(
    server: PostgreSQLServer, managers: list[ManagerProcess], people: TeamOfUsers
) -> None:
    assert awaited(lambda: holder_among(managers, people)) in managers
    listed = managers[0].call("GET", "/v1/managers", headers=people.bearer("viewer"))
    assert {each["url"] for each in listed if each["is_alive"]} == {manager.url for manager in managers}
    engine = open_engine(catalog_url(server.url))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def additions(manager: ManagerProcess, people: TeamOfUsers) -> list[tuple[str, str]]:
    """Return who added users from where, the newest first."""
    records = manager.call("GET", "/v1/audit?limit=1000", headers=people.bearer("admin"))
    added = [each for each in records if each["action"] == "POST /v1/access/users" and each["status"] == 201]
    return [(each["user"], each["address"]) for each in added]


def test_any_manager_takes_a_change_and_one_makes_it(managers: list[ManagerProcess], people: TeamOfUsers) -> None:
    before = additions(managers[1], people)
    for number, manager in enumerate(managers):
        made = add_user(manager, people, f"forwarded-{number}")
        assert made.status_code == 201, made.text
        assert made.json()["name"] == f"forwarded-{number}"
        assert add_user(manager, people, f"forwarded-{number}").status_code == 422
    listed = [names_of(manager, people) for manager in managers]
    assert listed[0] == listed[1] == listed[2] >= {"forwarded-0", "forwarded-1", "forwarded-2"}
    assert additions(managers[1], people) == [("admin", "127.0.0.1")] * 3 + before
    with people.log_in("editor") as browser:
        session = {"headrace_session": browser.cookies["headrace_session"]}
        for manager in managers:
            seen = httpx.get(f"{manager.url}/v1/session", cookies=session).json()
            assert seen["user"] == "editor"
            created = httpx.post(
                f"{manager.url}/v1/access/tokens", json={}, cookies=session,
                headers={"x-csrf-token": seen["csrf_token"], "origin": manager.url},
            )  # fmt: skip
            assert created.status_code == 201, created.text


def test_a_request_cannot_pretend_to_be_forwarded(managers: list[ManagerProcess], people: TeamOfUsers) -> None:
    forged = {"x-headrace-forwarded": "0" * 64, "x-headrace-client": "10.9.9.9", **people.bearer("editor")}
    managers[0].call("POST", "/v1/topics", json={"name": "not-forwarded"}, headers=forged, status=201)
    newest = managers[0].call("GET", "/v1/audit?user=editor&limit=1", headers=people.bearer("admin"))
    assert newest[0]["address"] == "127.0.0.1"


@pytest.mark.record_integrity
@pytest.mark.parametrize("loss", [signal.SIGKILL, signal.SIGSTOP])
def test_the_loss_of_the_holder_loses_and_repeats_nothing(
    managers: list[ManagerProcess],
    people: TeamOfUsers,
    broker: EmbeddedBroker,
    server: PostgreSQLServer,
    topic: str,
    loss: signal.Signals,
) -> None:
    holder = awaited(lambda: holder_among(managers, people))
    others = [manager for manager in managers if manager is not holder]
    added = []
    with KeyedLoad(managers, topic, people.bearer("editor")) as load:
        awaited(lambda: len(load.acknowledged) >= 3)
        os.kill(holder.process.pid, loss)
        began = time.monotonic()
        name = f"after-{loss.name.lower()}"
        awaited(lambda: add_user(others[0], people, name).status_code in (201, 422))
        print(f"taken over after {time.monotonic() - began:.2f} s")
        added.append(name)
        acknowledged = len(load.acknowledged)
        awaited(lambda: len(load.acknowledged) >= acknowledged + 3)
        if loss == signal.SIGSTOP:
            with ThreadPoolExecutor(1) as threads:
                late = threads.submit(add_user, holder, people, "sent-to-a-stopped-holder")
                holder.process.send_signal(signal.SIGCONT)
                if late.result().status_code == 201:  # Forwarded, because it no longer holds the lease.
                    added.append("sent-to-a-stopped-holder")
                else:
                    assert late.result().status_code == 503
    assert names_of(others[0], people) >= {*added}
    new = awaited(lambda: holder_among(others, people))
    assert new is not holder
    read = others[0].call("GET", f"/v1/topics/{topic}/records?max=10000&as=json", headers=people.bearer("viewer"))
    stored = [record["value"] for record in read["records"]]
    assert len(stored) == len(set(stored))
    assert set(stored) >= set(load.acknowledged)
    if loss == signal.SIGKILL:
        holder.__exit__(None, None, None)
        managers[managers.index(holder)] = ManagerProcess(broker.bootstrap_servers, "--catalog", server.url)
        people.manager = managers[0]


def create_database(server: PostgreSQLServer, name: str) -> None:
    engine = open_engine(catalog_url(server.url)).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()


def test_a_holder_stopped_inside_a_transaction_does_not_keep_the_lease(server: PostgreSQLServer) -> None:
    create_database(server, "paused")
    url = catalog_url(server.url).set(database="paused")
    migrate(url)
    stopped, other = (Instance(name, f"http://{name}", "1") for name in ("stopped", "other"))
    engine = open_engine(url)
    with engine.connect() as connection, connection.begin():
        epoch = beat(connection, stopped, now=now_ms(connection) - 60_000, started_ms=0).epoch
    assert epoch is not None
    held = engine.connect()
    require(held, holder="stopped", epoch=epoch)  # Its process now stands still, with the row locked.
    with engine.connect() as connection, connection.begin():
        assert beat(connection, other, now=now_ms(connection), started_ms=0).epoch == epoch + 1
    held.connection.driver_connection.close()
    held.invalidate()
    held.close()
    engine.dispose()


def test_the_managers_recover_when_the_database_returns(
    managers: list[ManagerProcess], people: TeamOfUsers, server: PostgreSQLServer
) -> None:
    manager = managers[0]
    server.stop()
    try:
        assert "catalog" in awaited(
            lambda: _refusal(manager.http.get("/v1/topics", headers=people.bearer("viewer")), 503)
        )
        manager.call("GET", "/healthz")
        assert "trust" not in manager.log()
    finally:
        server.start()
    awaited(lambda: manager.http.get("/v1/topics", headers=people.bearer("viewer")).status_code == 200)
    awaited(lambda: add_user(manager, people, "after-the-outage").status_code in (201, 422))


def _refusal(response: httpx.Response, status: int) -> str:
    return str(response.json()["detail"]) if response.status_code == status else ""


def test_a_backup_moves_a_catalog_from_sqlite_to_postgresql(server: PostgreSQLServer, tmp_path: Path) -> None:
    create_database(server, "restored")
    source = f"sqlite:///{tmp_path}/catalog.db"
    TeamOfUsers(source)
    target = server.url.replace("/postgres", "/restored")
    run = CliRunner()
    written = run.invoke(cli, ["catalog", "backup", f"{tmp_path}/backup", "--catalog", source])
    assert written.exit_code == 0, written.output
    restored = run.invoke(cli, ["catalog", "restore", f"{tmp_path}/backup", "--catalog", target])
    assert restored.exit_code == 0, restored.output
    listed = run.invoke(cli, ["manager", "users", "list", "--catalog", target])
    assert "editor" in listed.output
    again = run.invoke(cli, ["catalog", "restore", f"{tmp_path}/backup", "--catalog", target])
    assert (again.exit_code, "--replace" in again.output) == (1, True)
    assert run.invoke(cli, ["catalog", "backup", f"{tmp_path}/back", "--catalog", target]).exit_code == 0

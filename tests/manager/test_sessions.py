"""Sessions, tokens and logins of the manager's users, and what ends them."""

import json
import time
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.client import Admin
from headrace.manager.limits import LOGIN_FAILURES_BY_PAIR_MAX
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess
from tests.manager.people import TeamOfUsers, password_of

pytestmark = pytest.mark.process
REVOCATION_S_MAX = 30


def test_a_session_is_a_cookie_that_scripts_and_other_sites_do_not_get(team: TeamOfUsers) -> None:
    entered = httpx.post(f"{team.manager.url}/v1/session", json={"user": "editor", "password": password_of("editor")})
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "path=/" in cookie
    assert password_of("editor") not in team.manager.log()
    with team.log_in("editor") as browser:
        assert browser.get("/v1/session").json()["user"] == "editor"
        assert browser.get("/v1/topics").status_code == 200
        assert browser.delete("/v1/session").status_code == 204
        assert browser.get("/v1/topics").status_code == 401


def test_a_change_by_a_session_needs_its_own_csrf_token(team: TeamOfUsers) -> None:
    with team.log_in("editor") as browser, team.log_in("admin") as other:
        mine, foreign = browser.headers.pop("x-csrf-token"), other.headers["x-csrf-token"]
        wanted = {"name": "made-by-a-session"}
        assert browser.post("/v1/topics", json=wanted).status_code == 403
        assert browser.post("/v1/topics", json=wanted, headers={"x-csrf-token": foreign}).status_code == 403
        assert browser.post("/v1/topics", json=wanted, headers={"x-csrf-token": mine}).status_code == 201


def test_a_login_never_takes_a_session_that_the_client_brings(team: TeamOfUsers) -> None:
    with team.log_in("viewer") as browser:
        earlier = browser.cookies["headrace_session"]
        del browser.headers["x-csrf-token"]
        browser.post("/v1/session", json={"user": "viewer", "password": password_of("viewer")})
        assert browser.cookies["headrace_session"] != earlier
        old = httpx.get(f"{team.manager.url}/v1/topics", cookies={"headrace_session": earlier})
        assert old.status_code == 401
    chosen = {"headrace_session": "chosen-by-an-attacker"}
    entered = httpx.post(
        f"{team.manager.url}/v1/session", json={"user": "viewer", "password": password_of("viewer")}, cookies=chosen
    )
    assert entered.cookies["headrace_session"] != chosen["headrace_session"]
    assert httpx.get(f"{team.manager.url}/v1/topics", cookies=chosen).status_code == 401


def test_the_page_logs_people_in(team: TeamOfUsers) -> None:
    with httpx.Client(base_url=team.manager.url) as browser:
        page = browser.get("/login")
        assert "<form" in page.text
        assert "<script" not in page.text
        wrong = browser.post("/login", data={"user": "<b>", "password": "x"})
        assert (wrong.status_code, "wrong" in wrong.text) == (401, True)
        foreign = browser.post("/login", data={"user": "x"}, headers={"origin": "http://evil.example"})
        assert foreign.status_code == 403
        entered = browser.post("/login", data={"user": "viewer", "password": password_of("viewer")})
        assert entered.status_code == 303
        assert browser.get("/v1/topics").status_code == 200


def test_guessing_is_slowed_down_and_does_not_lock_out_others(team: TeamOfUsers) -> None:
    team.add("victim", "viewer")
    statuses = [
        httpx.post(f"{team.manager.url}/v1/session", json={"user": "victim", "password": f"guess {number}"}).status_code
        for number in range(LOGIN_FAILURES_BY_PAIR_MAX + 1)
    ]
    assert statuses == [401] * LOGIN_FAILURES_BY_PAIR_MAX + [429]
    with team.log_in("admin"):
        pass


def test_tokens_are_created_by_sessions_and_belong_to_their_users(team: TeamOfUsers) -> None:
    with team.log_in("viewer") as browser:
        created = browser.post("/v1/access/tokens", json={"description": "a script"}).json()
        bearer = {"authorization": f"Bearer {created['token']}"}
        manager = team.manager
        manager.call("GET", "/v1/topics", headers=bearer)
        manager.call("POST", "/v1/access/tokens", json={}, headers=bearer, status=403)
        assert created["token"] not in json.dumps(browser.get("/v1/access/tokens").json())
        manager.call("DELETE", f"/v1/access/tokens/{created['id']}", headers=team.bearer("editor"), status=404)
        assert browser.delete(f"/v1/access/tokens/{created['id']}").status_code == 204
    wait_until_refused(team.manager, bearer)
    assert manager.call("GET", "/v1/access/tokens?everyone=true", headers=team.bearer("viewer"), status=403)
    listed = manager.call("GET", "/v1/access/tokens?everyone=true", headers=team.bearer("admin"))
    assert {each["user"] for each in listed} >= {"admin", "editor"}


def wait_until_refused(manager: ManagerProcess, headers: dict[str, str]) -> None:
    ends = time.monotonic() + REVOCATION_S_MAX
    while manager.http.get("/v1/topics", headers=headers).status_code != 401:
        assert time.monotonic() < ends, "the credential is still valid"
        time.sleep(0.05)


def test_a_stream_ends_when_its_user_is_removed(team: TeamOfUsers, topic: str) -> None:
    team.add("leaver", "viewer")
    bearer = team.bearer("leaver")
    with team.manager.http.stream("GET", f"/v1/topics/{topic}/stream", headers=bearer) as stream:
        assert stream.status_code == 200
        team.manager.call("DELETE", "/v1/access/users/leaver", headers=team.bearer("admin"), status=204)
        assert b"data:" not in b"".join(stream.iter_raw())  # It ends by itself.
    wait_until_refused(team.manager, bearer)


def test_admins_change_users_and_the_last_admin_stays(team: TeamOfUsers) -> None:
    manager, admin = team.manager, team.bearer("admin")
    new = {"name": "new", "role": "viewer", "password": "first password"}
    assert manager.call("POST", "/v1/access/users", json=new, headers=admin, status=201)["role"] == "viewer"
    manager.call("POST", "/v1/access/users", json=new, headers=admin, status=422)
    manager.call("POST", "/v1/access/users", json={**new, "name": "a/b"}, headers=admin, status=422)
    manager.call("PATCH", "/v1/access/users/new", json={"password": "short"}, headers=admin, status=422)
    assert manager.call("PATCH", "/v1/access/users/new", json={"role": "editor"}, headers=admin)["role"] == "editor"
    manager.call("DELETE", "/v1/access/users/missing", headers=admin, status=404)
    for request in (("DELETE", {}), ("PATCH", {"json": {"role": "viewer"}})):
        refused = manager.call(request[0], "/v1/access/users/admin", headers=admin, status=422, **request[1])
        assert "last admin" in refused["detail"]


def test_every_change_leaves_an_audit_record(team: TeamOfUsers) -> None:
    manager = team.manager
    manager.call("POST", "/v1/topics", json={"name": "audited"}, headers=team.bearer("editor"), status=201)
    manager.call("POST", "/v1/topics", json={"name": "audited"}, headers=team.bearer("editor"), status=409)
    manager.call("POST", "/v1/topics/audited/records", json={"value": 1}, headers=team.bearer("editor"))
    with team.log_in("editor"):
        pass
    records = manager.call("GET", "/v1/audit?user=editor", headers=team.bearer("admin"))
    login, refused, made, *_ = records
    assert [each["status"] for each in (login, refused, made)] == [204, 409, 201]
    assert made["action"] == "POST /v1/topics"
    assert json.loads(made["detail"]) == {"name": "audited"}
    assert login["detail"] == ""
    assert made["address"] == "127.0.0.1"
    page = manager.call("GET", f"/v1/audit?before={made['id']}&limit=1", headers=team.bearer("admin"))
    assert page[0]["id"] < made["id"]
    team.add("another", "viewer")
    by_command = manager.call("GET", "/v1/audit?limit=1000", headers=team.bearer("admin"))
    assert "users add" in {each["action"] for each in by_command}


def test_the_command_line_keeps_users(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"

    def run(*arguments: str, given: str = "") -> Result:
        return CliRunner().invoke(cli, ["manager", "users", *arguments, "--catalog", catalog], input=given)

    short = run("add", "ada", "--password-file", "-", given="short\n")
    assert (short.exit_code, "8 to 1024 characters" in short.output) == (1, True)
    assert run("add", "ada", "--password=visible-to-all").exit_code == 2
    prompted = run("add", "ada", "--role", "admin", given="a long password\na long password\n")
    assert prompted.exit_code == 0, prompted.output
    assert "a long password" not in prompted.output
    (tmp_path / "password").write_text("another password\n")
    assert run("add", "bob", "--password-file", str(tmp_path / "password")).exit_code == 0
    assert run("password", "ada", "--password-file", "-", given="a new password\n").exit_code == 0
    assert run("token", "ada", "--days", "30").output.startswith("hrt_")
    assert "there is no user" in run("remove", "eve").output
    assert "last admin" in run("remove", "ada").output
    assert run("remove", "bob").exit_code == 0
    listed = run("list").output
    assert ("ada" in listed, "bob" in listed) == (True, False)


def test_a_lost_catalog_does_not_reopen_administration(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog.db"
    with EmbeddedBroker(data_dir=str(tmp_path / "broker")) as broker:
        people = TeamOfUsers(f"sqlite:///{catalog}")
        with ManagerProcess(broker.bootstrap_servers, "--catalog", people.catalog) as manager:
            manager.call("GET", "/v1/topics", status=401)
            ends = time.monotonic() + REVOCATION_S_MAX
            while "__headrace_manager_users" not in broker_topics(broker):
                assert time.monotonic() < ends
                time.sleep(0.05)
        for file in tmp_path.glob("catalog.db*"):
            file.unlink()
        with ManagerProcess(broker.bootstrap_servers, "--catalog", people.catalog) as manager:
            manager.call("GET", "/v1/topics", status=401)
            manager.call("GET", "/healthz")
        with ManagerProcess(broker.bootstrap_servers) as manager:  # with another catalog
            manager.call("POST", "/v1/topics", json={"name": "reopened"}, status=401)


def broker_topics(broker: EmbeddedBroker) -> list[str]:
    with Admin(broker.bootstrap_servers) as admin:
        return [topic.name for topic in admin.topics()]

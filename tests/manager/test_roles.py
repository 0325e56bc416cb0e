"""The table of roles: every route is in it, and every route answers each role as it says."""

import json

import pytest

from headrace.manager.access.guard import path_of
from headrace.manager.access.roles import RULES, WRITTEN, RuleBook, UserRole
from headrace.manager.app import OPENAPI_PATH, ROUTERS
from tests.manager.people import PEOPLE, TeamOfUsers

LOGINS = {("POST", "/v1/session"), ("POST", "/login")}
"""Requests that are refused with 401 because of what they carry."""


def test_the_table_has_every_route_and_no_other() -> None:
    served = {("GET", OPENAPI_PATH)}
    for module in ROUTERS:
        for route in module.router.routes:
            served |= {(method, route.path) for method in getattr(route, "methods", None) or ("WEBSOCKET",)}
    assert served == RULES.keys()


def test_changes_need_more_than_seeing_and_are_audited() -> None:
    for (method, path), rule in RULES.items():
        if method not in ("GET", "WEBSOCKET") and rule.role <= UserRole.VIEWER:
            assert path.startswith(("/v1/session", "/login", "/v1/access/tokens")), path
        if method not in ("GET", "WEBSOCKET") and rule is not WRITTEN:
            assert rule.is_audited, path
        if "password" in path or path.startswith(("/v1/access/users", "/v1/session", "/login")):
            assert rule.has_secrets or method in ("GET", "DELETE"), path


def test_paths_are_matched_part_by_part() -> None:
    book = RuleBook(RULES)
    assert book.find("GET", "/v1/topics/a b") == ("/v1/topics/{topic}", RULES["GET", "/v1/topics/{topic}"])
    assert book.find("HEAD", "/v1/topics") == ("/v1/topics", RULES["GET", "/v1/topics"])
    assert book.find("GET", "/v1/topics/") is None
    assert book.find("GET", "/v1/topics/a/b") is None
    assert book.find("GET", "//v1/topics") is None
    assert book.find("TRACE", "/v1/topics") is None
    assert path_of({"path": "/x/v1/topics", "root_path": "/x"}) == "/v1/topics"
    assert path_of({"path": "/xv1/topics", "root_path": "/x"}) == "/xv1/topics"


def filled(path: str) -> str:
    """Return a path to nothing that exists."""
    for name in ("topic", "group", "transactional_id", "user", "token", "mask", "client"):
        path = path.replace(f"{{{name}}}", "matrix-missing")
    return path.replace("{node_id}", "77").replace("{broker}", "77")


@pytest.mark.process
@pytest.mark.parametrize("who", ["anonymous", *PEOPLE])
def test_every_route_answers_each_role_as_the_table_says(team: TeamOfUsers, who: str) -> None:
    role = UserRole[who.upper()] if who in PEOPLE else UserRole.ANYONE
    headers = team.bearer(who) if who in PEOPLE else {}
    wrong = []
    for (method, path), rule in RULES.items():
        if method == "WEBSOCKET" or (method, path) in LOGINS:
            continue
        with team.manager.http.stream(method, filled(path), headers=headers, content=b"[") as response:
            status = response.status_code
        refusal = 403 if who in PEOPLE else 303 if rule.is_page else 401
        if (status in (401, 403)) if role >= rule.role else status != refusal:
            wrong.append((method, path, status))
    assert not wrong


@pytest.mark.process
def test_a_refused_request_is_refused_before_its_body_is_read(team: TeamOfUsers) -> None:
    huge = json.dumps({"name": "x" * 1_000_000}).encode()
    refused = team.manager.http.post("/v1/topics", content=huge + b"{", headers=team.bearer("viewer"))
    assert refused.status_code == 403
    assert "needs the role editor" in refused.json()["detail"]
    anonymous = team.manager.http.post("/v1/topics", content=b"{")
    assert anonymous.status_code == 401
    assert anonymous.headers["www-authenticate"] == "Bearer"
    assert team.manager.http.get("/no/such/path").status_code == 404

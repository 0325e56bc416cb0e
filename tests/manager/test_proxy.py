"""A manager behind a proxy: forwarded headers count from the proxy alone, and only those that the proxy adds."""

from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import httpx
import pytest

from headrace.manager.access.boundary import Boundary
from headrace.manager.gate import check
from headrace.manager.settings import parse_proxies
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess
from tests.manager.people import TeamOfUsers, password_of

PROXY = "10.0.0.7"
FORWARDED = {
    "x-forwarded-for": "198.51.100.1, 203.0.113.9",
    "x-forwarded-proto": "https",
    "x-forwarded-host": "logs.example",
}


def admitted(peer: str, **headers: str) -> tuple[int | None, str, str]:
    """Return the status of a refusal, and the client and scheme that the manager believes."""
    encoded = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: dict[str, Any] = {"type": "http", "headers": encoded, "state": {}, "client": (peer, 1), "scheme": "http"}
    refused = check(scope, dict(encoded), Boundary(is_local=False, proxies=parse_proxies((PROXY,))))
    return None if refused is None else refused.status, scope["client"][0], str(scope["scheme"])


def test_headers_are_believed_from_the_proxy_alone() -> None:
    given = {name.replace("-", "_"): value for name, value in FORWARDED.items()}
    assert admitted(PROXY, host="manager", **given) == (None, "203.0.113.9", "https")
    assert admitted("10.0.0.8", host="manager", **given)[0] == 403
    assert admitted("127.0.0.1", host="localhost", **given) == (None, "127.0.0.1", "http")
    assert admitted("127.0.0.1", host="logs.example", **given)[0] == 421
    assert admitted(PROXY, host="manager", x_forwarded_for="no address", x_forwarded_proto="gopher") == (
        None, PROXY, "http",
    )  # fmt: skip


def test_the_origin_is_that_of_the_proxys_address() -> None:
    given = {name.replace("-", "_"): value for name, value in FORWARDED.items()}
    assert admitted(PROXY, host="manager", origin="https://logs.example", **given)[0] is None
    for foreign in ("http://logs.example", "https://manager", "https://evil.example", "null"):
        assert admitted(PROXY, host="manager", origin=foreign, **given)[0] == 403, foreign


@pytest.fixture(scope="module")
def proxied(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamOfUsers]:
    """A manager whose proxy is this machine, so that the tests are the proxy."""
    people = TeamOfUsers(f"sqlite:///{tmp_path_factory.mktemp('catalog')}/catalog.db")
    options = ("--catalog", people.catalog, "--behind-proxy", "127.0.0.1", "--root-path", "/x/")
    with ManagerProcess(broker.bootstrap_servers, *options) as manager:
        people.manager = manager
        yield people


@pytest.mark.process
def test_a_session_through_the_proxy(proxied: TeamOfUsers) -> None:
    with httpx.Client(base_url=proxied.manager.url, headers=FORWARDED, timeout=60) as browser:
        sent_away = browser.get("/")
        assert (sent_away.status_code, sent_away.headers["location"]) == (303, "/x/login")
        form = {"user": "admin", "password": password_of("admin")}
        entered = browser.post("/login", data=form, headers={"origin": "https://logs.example"})
        assert (entered.status_code, entered.headers["location"]) == (303, "/x")
        cookie = entered.headers["set-cookie"]
        assert {"Path=/x", "Secure", "HttpOnly", "SameSite=lax"} <= {part.strip() for part in cookie.split(";")}
        refused = browser.post("/login", data=form, headers={"origin": "https://evil.example"})
        assert refused.status_code == 403
    records = proxied.manager.call("GET", "/v1/audit", headers=proxied.bearer("admin"))
    assert {each["address"] for each in records if each["action"] == "POST /login"} == {"203.0.113.9"}


@pytest.mark.process
@pytest.mark.parametrize(
    "path",
    [
        "/v1/access/users/../../../healthz", "/v1//access/users", "/v1/access/users/", "/v1/./access/users",
        "/v1/access%2Fusers", "/v1/topics/..%2f..%2faccess%2fusers", "//v1/access/users", "/x/v1/access/users;a=b",
        "/assets/..%2f..%2fsettings.py", "/assets/%2e%2e/app.py", "/v1/topics/%00", "/v1/access/users%20",
    ],
)  # fmt: skip
def test_no_way_of_writing_a_path_goes_round_the_roles(proxied: TeamOfUsers, path: str) -> None:
    """The guard and the router must mean the same route; a path that neither knows is refused or not found."""
    connection = HTTPConnection(proxied.manager.url.removeprefix("http://"), timeout=60)  # It sends paths as they are.
    connection.request("GET", path, headers=proxied.bearer("viewer"))
    response = connection.getresponse()
    content = response.read().decode()
    connection.close()
    assert response.status in (400, 403, 404), content
    assert "scrypt" not in content
    assert response.headers["content-type"] == "application/problem+json"

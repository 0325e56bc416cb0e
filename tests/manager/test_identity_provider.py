"""Logins at an identity provider, and what a provider or a browser that lies does not achieve."""

import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey

from headrace.manager.access.identity_provider import ProviderSettings, check_provider, parse_roles
from headrace.operations.errors import OperationError
from headrace.testing import EmbeddedBroker
from tests.manager.identity_server import CLIENT_ID, CLIENT_SECRET, IdentityServer, encoded
from tests.manager.manager_process import REQUEST_S_MAX, ManagerProcess


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityServer]:
    running = IdentityServer()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def protected(
    broker: EmbeddedBroker, provider: IdentityServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ManagerProcess]:
    secret = tmp_path_factory.mktemp("oidc") / "secret"
    secret.write_text(f"{CLIENT_SECRET}\n")
    with ManagerProcess(
        broker.bootstrap_servers, "--oidc-issuer", provider.issuer, "--oidc-client-id", CLIENT_ID,
        "--oidc-secret-file", str(secret), "--oidc-role", "editor=operators", "--oidc-role", "admin=masters",
    ) as manager:  # fmt: skip
        yield manager


@pytest.fixture
def browser(protected: ManagerProcess, provider: IdentityServer) -> Iterator[httpx.Client]:
    provider.behave()
    with httpx.Client(base_url=protected.url, timeout=REQUEST_S_MAX) as client:
        yield client


def returned(browser: httpx.Client) -> str:
    """Return the address to which the provider sends the browser back."""
    begun = browser.get("/login/oidc")
    assert begun.status_code == 303, begun.text
    return httpx.get(begun.headers["location"]).headers["location"]


@pytest.mark.process
def test_a_user_of_the_provider_logs_in_with_the_role_of_a_group(browser: httpx.Client) -> None:
    assert browser.get("/v1/topics").status_code == 401
    assert browser.get("/", headers={"accept": "text/html"}).headers["location"] == "/login"
    assert "/login/oidc" in browser.get("/login").text
    begun = browser.get("/login/oidc")
    cookie = begun.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    finished = browser.get(returned(browser))
    assert (finished.status_code, finished.headers["location"]) == (303, "/")
    session = browser.get("/v1/session").json()
    assert (session["user"], session["role"]) == ("oidc:subject-1", "editor")
    made = browser.post("/v1/topics", json={"name": "by-oidc"}, headers={"x-csrf-token": session["csrf_token"]})
    assert made.status_code == 201
    token = browser.post("/v1/access/tokens", json={}, headers={"x-csrf-token": session["csrf_token"]})
    assert token.status_code == 404  # Tokens belong to users of the catalog.


@pytest.mark.process
def test_an_admin_ends_the_sessions_of_a_user_of_the_provider(browser: httpx.Client, provider: IdentityServer) -> None:
    provider.claims = {"groups": "masters", "sub": "boss"}
    browser.get(returned(browser))
    token = browser.get("/v1/session").json()["csrf_token"]
    audit = browser.get("/v1/audit").json()
    assert audit[0]["user"] == "oidc:boss"
    assert "code" not in audit[0]["resource"]
    ended = browser.delete("/v1/access/users/oidc:boss/sessions", headers={"x-csrf-token": token})
    assert ended.status_code == 204
    ends = time.monotonic() + REQUEST_S_MAX
    while browser.get("/v1/topics").status_code != 401:
        assert time.monotonic() < ends


@pytest.mark.process
@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "of another login"},
        {"aud": "another-client"},
        {"aud": [CLIENT_ID, "another-client"]},
        {"iss": "https://evil.example"},
        {"exp": 1_000_000_000},
        {"exp": None},
        {"sub": None},
    ],
    ids=lambda claims: "-".join(claims),
)
def test_a_token_that_proves_something_else_is_refused(
    browser: httpx.Client, provider: IdentityServer, claims: dict[str, Any]
) -> None:
    provider.claims = claims
    refused = browser.get(returned(browser))
    assert refused.status_code == 502, refused.text
    assert "did not prove" in refused.json()["detail"]
    assert browser.get("/v1/topics").status_code == 401


@pytest.mark.process
def test_a_token_signed_by_another_key_is_refused(browser: httpx.Client, provider: IdentityServer) -> None:
    provider.signing_key = RSAKey.generate_key(2048, {"kid": "first"})
    assert browser.get(returned(browser)).status_code == 502
    public = provider.key.as_pem(private=False)

    def by_public_key(claims: dict[str, Any]) -> str:
        signed = f"{encoded({'alg': 'HS256', 'kid': provider.key.kid})}.{encoded(claims)}"
        made = hmac.digest(public, signed.encode(), "sha256")
        return f"{signed}.{urlsafe_b64encode(made).decode().rstrip('=')}"

    for forge in (by_public_key, lambda claims: f"{encoded({'alg': 'none'})}.{encoded(claims)}.", lambda _claims: "x"):
        provider.forge = forge
        assert browser.get(returned(browser)).status_code == 502


@pytest.mark.process
def test_a_new_key_of_the_provider_is_known_at_once(browser: httpx.Client, provider: IdentityServer) -> None:
    provider.key = RSAKey.generate_key(2048, {"kid": "second", "use": "sig"})
    provider.behave()
    provider.token_header = {"alg": "RS256", "kid": "second"}
    assert browser.get(returned(browser)).status_code == 303


@pytest.mark.process
def test_a_login_belongs_to_its_browser_and_counts_once(browser: httpx.Client, provider: IdentityServer) -> None:
    address = returned(browser)
    stolen = httpx.get(address)
    assert stolen.status_code == 401
    assert "not begun in this browser" in stolen.json()["detail"]
    forged = httpx.get(address, cookies={"headrace_login": "another"})
    assert forged.status_code == 401
    cookies = dict(browser.cookies)
    assert browser.get(address).status_code == 303
    assert "used already" in httpx.get(address, cookies=cookies).json()["detail"]
    assert browser.get("/login/oidc/callback").status_code == 401
    denied = returned(browser).split("?")[1]
    state = parse_qs(denied)["state"][0]
    assert browser.get("/login/oidc/callback", params={"state": state, "error": "access_denied"}).status_code == 401


@pytest.mark.process
def test_a_code_of_another_login_is_refused_by_pkce(browser: httpx.Client, provider: IdentityServer) -> None:
    stolen = parse_qs(urlsplit(returned(browser)).query)["code"][0]
    state = parse_qs(urlsplit(returned(browser)).query)["state"][0]
    refused = browser.get("/login/oidc/callback", params={"state": state, "code": stolen})
    assert refused.status_code == 502
    assert provider.refusals == [stolen]


@pytest.mark.process
def test_users_without_a_group_or_a_name_get_no_session(browser: httpx.Client, provider: IdentityServer) -> None:
    for claims in ({"groups": ["unknown"]}, {"groups": {"operators": 1}}, {"sub": "a\nb"}, {"sub": "x" * 400}):
        provider.claims = claims
        assert browser.get(returned(browser)).status_code == 403, claims
    assert browser.get("/v1/topics").status_code == 401


@pytest.mark.process
def test_redirects_of_the_provider_are_not_followed(browser: httpx.Client, provider: IdentityServer) -> None:
    address = returned(browser)
    provider.token_status = 302
    refused = browser.get(address)
    assert refused.status_code == 502
    assert "status 302" in refused.json()["detail"]


@pytest.mark.process
def test_addresses_without_tls_are_refused(broker: EmbeddedBroker, tmp_path: Path) -> None:
    provider = IdentityServer()
    try:
        provider.description = {"authorization_endpoint": "http://evil.example/authorize"}
        options = ("--oidc-issuer", provider.issuer, "--oidc-client-id", CLIENT_ID, "--oidc-role", "viewer=x")
        with ManagerProcess(broker.bootstrap_servers, *options) as manager:
            manager.call("GET", "/login/oidc", status=503)
            provider.description = {"issuer": "https://another.example"}
            manager.call("GET", "/login/oidc", status=503)
    finally:
        provider.stop()


def test_settings_that_would_be_unsafe_are_refused() -> None:
    assert parse_roles(("admin=a=b", "viewer=x")) == {"a=b": "admin", "x": "viewer"}
    for wrong in ("admin", "admin=", "root=x"):
        with pytest.raises(OperationError):
            parse_roles((wrong,))
    for issuer in ("http://idp.example", "file:///etc/passwd", "idp.example"):
        with pytest.raises(OperationError, match="https"):
            check_provider(ProviderSettings(issuer=issuer, client_id="x", roles={"x": "viewer"}))
    with pytest.raises(OperationError, match="--oidc-role"):
        check_provider(ProviderSettings(issuer="https://idp.example", client_id="x"))
    assert "hidden" not in repr(ProviderSettings(issuer="https://x", client_id="x", client_secret="hidden"))

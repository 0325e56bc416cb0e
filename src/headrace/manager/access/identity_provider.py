"""Logins at an identity provider by OpenID Connect: the authorization code flow with PKCE.

All addresses come from the operator and from the provider's own description; none comes from a request. Redirects are
not followed.
"""

import json
import ssl
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from anyio.to_thread import run_sync
from sqlalchemy import Connection, delete, func, insert, select

from headrace.core.access.signed_tokens import (
    KeysUnusable,
    TokenRefused,
    TokenRules,
    checked_claims,
    is_installed,
    parse_keys,
)
from headrace.manager.access.roles import ROLES, UserRole
from headrace.manager.access.users import digest_of, new_secret
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.engine import now_ms
from headrace.manager.catalog.tables import identity_logins
from headrace.manager.limits import (
    IDENTITY_CLOCK_SECONDS_MAX,
    IDENTITY_DESCRIPTION_SECONDS,
    IDENTITY_LOGIN_SECONDS_MAX,
    IDENTITY_LOGINS_MAX,
    IDENTITY_RESPONSE_BYTES_MAX,
    IDENTITY_SECONDS_MAX,
)
from headrace.manager.problems import ApiProblem
from headrace.manager.settings import is_loopback
from headrace.operations.errors import OperationError
from headrace.ports.real.documents import http_exchange

ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
USER = "oidc:{}"
USER_LENGTH_MAX = 300
SCOPE = "openid profile email"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    """None for a public client, which PKCE alone protects."""
    user_claim: str = "sub"
    """The claim with the user's name; `sub` is the one that the provider never gives to another user."""
    role_claim: str = "groups"
    roles: Mapping[str, str] = field(default_factory=dict)
    """Roles by the value of the claim."""
    ca_file: str | None = None


class BegunLogin(NamedTuple):
    state: str
    """Kept in a cookie, which ties the login to the browser that began it."""
    url: str


class ProvenUser(NamedTuple):
    name: str
    role: str


class ProviderFailure(Exception):
    """The provider did not answer as OpenID Connect requires."""


def check_provider(settings: ProviderSettings) -> None:
    """Refuse settings by which passwords or tokens could be read on the network."""
    _check_url(settings.issuer, OperationError)
    if not settings.roles:
        raise OperationError("name at least one role: --oidc-role admin=VALUE, where VALUE is one of the claim")
    if not is_installed():
        raise OperationError('logins by OpenID Connect need joserfc: pip install "headrace[manager,auth]"')


def parse_roles(texts: tuple[str, ...]) -> dict[str, str]:
    """Return roles by value, of texts such as `admin=headrace-admins`."""
    found = {}
    for text in texts:
        role, equals, value = text.partition("=")
        if not equals or not value or role not in ROLES:
            raise OperationError(f'"{text}" names no role: write {", ".join(ROLES)}, "=" and a value of the claim')
        found[value] = role
    return found


def _check_url(url: object, error: type[Exception]) -> None:
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    if parts.hostname is None or not (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))
    ):
        raise error(f"the identity provider's address {url!r} must begin with https://")


class IdentityProvider:
    def __init__(self, settings: ProviderSettings, catalog: Catalog) -> None:
        self._settings = settings
        self._catalog = catalog
        self._context = ssl.create_default_context(cafile=settings.ca_file)
        self._description: dict[str, Any] = {}
        self._described_until_s = 0.0

    async def begin(self, redirect_uri: str) -> BegunLogin:
        """Return the address to which the browser is sent, after keeping what its return must prove."""
        description = await self._described()
        state, nonce, verifier = new_secret(), new_secret(), new_secret() + new_secret()

        def kept(connection: Connection) -> None:
            now = now_ms(connection)
            connection.execute(delete(identity_logins).where(identity_logins.c.expires_ms <= now))
            if (
                connection.execute(select(func.count()).select_from(identity_logins)).scalar_one()
                >= IDENTITY_LOGINS_MAX
            ):
                raise ApiProblem(503, "too many logins have begun: try again in some minutes")
            connection.execute(
                insert(identity_logins).values(
                    digest=digest_of(state), nonce=nonce, verifier=verifier,
                    expires_ms=now + IDENTITY_LOGIN_SECONDS_MAX * 1_000,
                )
            )  # fmt: skip

        await self._catalog.write(kept)
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": SCOPE,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = description["authorization_endpoint"]
        return BegunLogin(state, f"{address}{'&' if '?' in address else '?'}{urlencode(query)}")

    async def finish(self, *, state: str, code: str, redirect_uri: str) -> ProvenUser:
        """Return the user that the provider has proven; a login counts once."""

        def taken(connection: Connection) -> tuple[str, str] | None:
            own = identity_logins.c.digest == digest_of(state)
            row = connection.execute(select(identity_logins).where(own)).one_or_none()
            if row is None or connection.execute(delete(identity_logins).where(own)).rowcount == 0:
                return None
            return None if row.expires_ms <= now_ms(connection) else (row.nonce, row.verifier)

        found = await self._catalog.write(taken)
        if found is None:
            raise ApiProblem(401, "this login has expired or was used already: log in again")
        nonce, verifier = found
        try:
            token = await self._exchanged(code, verifier, redirect_uri)
            claims = await self._verified(token, nonce)
        except ProviderFailure as failure:
            raise ApiProblem(502, f"the identity provider did not prove who you are: {failure}") from failure
        return self._user(claims)

    def _user(self, claims: Mapping[str, Any]) -> ProvenUser:
        settings = self._settings
        name = claims.get(settings.user_claim)
        if not isinstance(name, str) or not name or not name.isprintable() or len(name) > USER_LENGTH_MAX - len(USER):
            raise ApiProblem(
                403, f'the identity provider gave no usable name in the claim "{self._settings.user_claim}"'
            )
        given = claims.get(self._settings.role_claim, [])
        values = [given] if isinstance(given, str) else given if isinstance(given, list) else []
        roles = [
            ROLES[self._settings.roles[each]]
            for each in values
            if isinstance(each, str) and each in self._settings.roles
        ]
        role = max(roles, default=UserRole.ANYONE)
        if role is UserRole.ANYONE:
            raise ApiProblem(
                403, f"{name} has no role in this manager: an administrator gives it by the identity provider"
            )
        return ProvenUser(USER.format(name), role.label)

    async def _exchanged(self, code: str, verifier: str, redirect_uri: str) -> str:
        """Exchange the code for the token that says who the user is."""
        settings = self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": settings.client_id,
            "code_verifier": verifier,
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if settings.client_secret is not None:
            pair = f"{quote(settings.client_id, safe='')}:{quote(settings.client_secret, safe='')}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        address = (await self._described())["token_endpoint"]
        answer = await self._fetch(address, body=urlencode(form).encode(), headers=headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise ProviderFailure("its response has no id_token")
        return token

    async def _verified(self, token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of the token after checking its signature, issuer, audience, times and nonce."""
        settings = self._settings
        rules = TokenRules(
            issuer=settings.issuer,
            audiences=(settings.client_id,),
            clock_skew_s=IDENTITY_CLOCK_SECONDS_MAX,
            required=("sub",),
            values={"nonce": nonce},
        )
        document = await self._fetch((await self._described())["jwks_uri"])
        try:
            claims = checked_claims(token, parse_keys(document), rules, time.time())
        except (KeysUnusable, TokenRefused) as error:
            raise ProviderFailure(f"its token is not valid: {error}") from error
        if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != settings.client_id:
            raise ProviderFailure("its token is for another client")
        return claims

    async def _described(self) -> dict[str, Any]:
        now_s = time.monotonic()
        if now_s >= self._described_until_s:
            issuer = self._settings.issuer
            try:
                found = await self._fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
                if found.get("issuer") != issuer:
                    raise ProviderFailure(f"it calls itself {found.get('issuer')!r}, not {issuer!r}")
                for name in ENDPOINTS:
                    _check_url(found.get(name), ProviderFailure)
            except ProviderFailure as failure:
                raise ApiProblem(
                    503, f"the identity provider {issuer} cannot be used: {failure}; log in with a password meanwhile"
                ) from failure
            self._description, self._described_until_s = found, now_s + IDENTITY_DESCRIPTION_SECONDS
        return self._description

    async def _fetch(
        self, url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        return await run_sync(partial(self._exchange, url, body, dict(headers or {})))

    def _exchange(self, url: str, body: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        try:
            content = http_exchange(
                url,
                self._context,
                bytes_max=IDENTITY_RESPONSE_BYTES_MAX,
                seconds_max=IDENTITY_SECONDS_MAX,
                body=body,
                headers=headers,
            )
            found = json.loads(content)
        except OSError as error:
            raise ProviderFailure(str(error)) from error
        except (ValueError, RecursionError) as error:
            raise ProviderFailure(f"{url} did not answer with JSON") from error
        if not isinstance(found, dict):
            raise ProviderFailure(f"{url} did not answer with a JSON object")
        return found

"""Targets of the logins: whole exchanges of SASL, tokens of an identity provider, and its documents with keys.

An input of the target `sasl-exchange` is a list of steps: a byte that says what the client sends, two bytes of length,
and the content.
"""

import json
from collections.abc import Iterator
from functools import cache
from hashlib import pbkdf2_hmac
from typing import Any

from headrace.core.access.oauth_bearer import OAuthBearerLogin, TokenNames, TokenUser, token_user
from headrace.core.access.plain import PlainLogin
from headrace.core.access.sasl import Challenge, Login, LoginFailed, Rejection, SaslSession, SaslState
from headrace.core.access.scram import ScramLogin, StoredCredential, credential_of, mock_credential
from headrace.core.access.signed_tokens import (
    KeysUnusable,
    SigningKeys,
    TokenRefused,
    TokenRules,
    checked_claims,
    parse_keys,
)
from headrace.model.access import ScramMechanism
from headrace.wire.apis import ApiKey
from tools.fuzz.target import INPUT_BYTES_MAX, Target, require

NOW_S = 1_800_000_000
USER, PASSWORD = "alice", "pencil"
SALT = b"a salt of alice!"
NONCE = "server"
RULES = TokenRules("issuer", ("cluster",), 30)
NAMES = TokenNames("sub", "scope", ())
_MECHANISMS = {1: "PLAIN", 2: "SCRAM-SHA-256", 3: "OAUTHBEARER"}
_MESSAGE = 0
STEPS_MAX = 16


class _Users:
    def credential(self, mechanism: ScramMechanism, user: str) -> StoredCredential | None:
        if user != USER:
            return None
        return credential_of(mechanism, SALT, _salted(mechanism.hash_name), 4_096)

    def mock(self, mechanism: ScramMechanism, user: str) -> StoredCredential:
        return mock_credential(mechanism, user, b"secret", None)


class _Verifier:
    def verify(self, token: str) -> TokenUser:
        return token_user(checked_claims(token, _keys(), RULES, NOW_S), NAMES)

    def remaining_ms(self, user: TokenUser) -> float:
        return 1_000.0 * (user.expires_s - NOW_S)


@cache
def _salted(hash_name: str) -> bytes:
    return pbkdf2_hmac(hash_name, PASSWORD.encode(), SALT, 4_096)


@cache
def _signing_key() -> Any:
    from joserfc.jwk import ECKey

    return ECKey.generate_key("P-256", {"kid": "one"})


@cache
def _keys() -> SigningKeys:
    return parse_keys(_document())


def _document() -> bytes:
    return json.dumps({"keys": [_signing_key().as_dict(private=False)]}).encode()


def _token(**claims: object) -> bytes:
    from joserfc import jwt

    made = {"iss": "issuer", "aud": "cluster", "sub": USER, "iat": NOW_S, "exp": NOW_S + 60, **claims}
    return jwt.encode({"alg": "ES256", "kid": "one"}, made, _signing_key()).encode()


def targets() -> Iterator[Target]:
    access = "core/access"
    yield Target(
        name="sasl-exchange",
        read=_exchange,
        seeds=_exchanges,
        sources=tuple(f"{access}/{name}.py" for name in ("sasl", "plain", "scram", "oauth_bearer")),
    )
    yield Target(name="oauth-token", read=_read_token, seeds=_tokens, sources=(f"{access}/signed_tokens.py",))
    yield Target(name="oauth-keys", read=_read_keys, seeds=_documents, sources=(f"{access}/signed_tokens.py",))


# Exchanges


def _step(kind: int, content: bytes = b"") -> bytes:
    return bytes([kind]) + len(content).to_bytes(2) + content


def _exchanges() -> list[bytes]:
    plain = _step(1) + _step(_MESSAGE, f"\0{USER}\0{PASSWORD}".encode())
    bearer = _step(3) + _step(_MESSAGE, b"n,,\x01auth=Bearer " + _token() + b"\x01\x01")
    refused = _step(3) + _step(_MESSAGE, b"n,,\x01auth=Bearer x.y.z\x01\x01") + _step(_MESSAGE, b"\x01")
    scram = _step(2) + b"".join(_step(_MESSAGE, message) for message in _scram_messages())
    return [plain, scram, bearer, refused, plain + plain, bearer + bearer]


def _scram_messages() -> Iterator[bytes]:
    import scramp

    client = scramp.ScramClient(["SCRAM-SHA-256"], USER, PASSWORD, c_nonce="client")
    server = ScramLogin(ScramMechanism.SCRAM_SHA_256, _Users(), nonce=NONCE)
    first = client.get_client_first().encode()
    yield first
    challenge = server.receive(first)
    assert isinstance(challenge, Challenge)
    client.set_server_first(challenge.message.decode())
    yield client.get_client_final().encode()


def _login(mechanism: str) -> Login:
    if mechanism == "PLAIN":
        return PlainLogin({USER: PASSWORD})
    if mechanism == "OAUTHBEARER":
        return OAuthBearerLogin(_Verifier())
    return ScramLogin(ScramMechanism.SCRAM_SHA_256, _Users(), nonce=NONCE)


def _exchange(data: bytes) -> bool:
    """Send the steps as a client would, as far as the broker lets it; return whether the client is admitted."""
    session, at, steps = SaslSession(0.0), 0, 0
    while at + 3 <= len(data[:INPUT_BYTES_MAX]) and steps < STEPS_MAX:
        kind, size = data[at], int.from_bytes(data[at + 1 : at + 3])
        content, at, steps = data[at + 3 : at + 3 + size], at + 3 + size, steps + 1
        request = ApiKey.SASL_AUTHENTICATE if kind == _MESSAGE else ApiKey.SASL_HANDSHAKE
        if session.refusal_of(request, 1.0) is not None or session.state is SaslState.REFUSED:
            return False
        try:
            _advance(session, _MECHANISMS.get(kind), content)
        except LoginFailed:
            session.refuse()
            require(session.refusal_of(ApiKey.SASL_AUTHENTICATE, 1.0) is not None, "a refused client may continue")
            return False
        require(session.user in (None, USER), "a client got another name")
    return session.state is SaslState.AUTHENTICATED


def _advance(session: SaslSession, mechanism: str | None, content: bytes) -> None:
    if session.state in (SaslState.MESSAGE, SaslState.REJECTED):
        step = session.receive(content)
        if isinstance(step, Rejection):
            session.reject(step)
        elif not isinstance(step, Challenge):
            session.admit(step, 1.0, step.lifetime_ms)
    elif mechanism is not None:
        session.choose(mechanism, _login(mechanism))


# Tokens and keys


def _tokens() -> list[bytes]:
    return [_token(), _token(aud=["other", "cluster"], scope="a b", nbf=NOW_S), _token(extra={"deep": [1, 2, {}]})]


def _read_token(data: bytes) -> bool:
    try:
        claims = checked_claims(data.decode("latin-1"), _keys(), RULES, NOW_S)
    except TokenRefused:
        return False
    require(claims["sub"] == USER, "a token that the issuer has not signed is accepted")
    return True


def _documents() -> list[bytes]:
    rsa = {"kty": "RSA", "kid": "r", "n": "w" * 342, "e": "AQAB", "use": "sig", "alg": "RS256"}
    found = json.loads(_document())["keys"]
    return [_document(), json.dumps({"keys": [rsa, *found, {"kty": "oct", "k": "AAAA"}]}).encode()]


def _read_keys(data: bytes) -> bool:
    try:
        return len(parse_keys(data)) > 0
    except KeysUnusable:
        return False

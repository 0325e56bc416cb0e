"""OAUTHBEARER without a broker: tokens that are accepted and refused, keys, messages, and when keys are fetched."""

import hmac
import json
import time
import warnings
from base64 import urlsafe_b64encode
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from headrace.core.access.key_refresh import KeyRefresh, RefreshTimes
from headrace.core.access.oauth_bearer import REFUSAL, OAuthBearerLogin, TokenNames, TokenUser, token_user
from headrace.core.access.sasl import LoginFailed, Proved, Rejection, SaslSession, SaslState
from headrace.core.access.signed_tokens import (
    KeysUnusable,
    KeyUnknown,
    SigningKeys,
    TokenRefused,
    TokenRules,
    checked_claims,
    parse_keys,
)
from headrace.model.configs.definition import ConfigError
from headrace.model.configs.values import BrokerConfig
from headrace.model.limits import TOKEN_BYTES_MAX, TOKEN_KEYS_MAX, TOKEN_KEYS_UNKNOWN_INTERVAL_MS
from headrace.wire.apis import ApiKey

from .token_issuer import AUDIENCE, ISSUER, TokenIssuer

RULES = TokenRules(ISSUER, (AUDIENCE, "another"), 30)
NAMES = TokenNames("sub", "scope", ())


@pytest.fixture(scope="module")
def issuer():
    return TokenIssuer()


@pytest.fixture(scope="module")
def keys(issuer):
    return parse_keys(issuer.document())


@pytest.fixture(scope="module")
def token(issuer):
    return issuer.token()


def checked(token, keys, rules=RULES):
    return checked_claims(token, keys, rules, time.time())


def encoded(value):
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(content).decode().rstrip("=")


# Tokens


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("RS256", lambda: RSAKey.generate_key(2048)),
        ("PS384", lambda: RSAKey.generate_key(2048)),
        ("ES256", lambda: ECKey.generate_key("P-256")),
        ("ES512", lambda: ECKey.generate_key("P-521")),
        ("Ed25519", lambda: OKPKey.generate_key("Ed25519")),
        ("EdDSA", lambda: OKPKey.generate_key("Ed25519")),
    ],
)
def test_signatures_of_public_keys_are_accepted(issuer, algorithm, key):
    made = key()
    keys = parse_keys(json.dumps({"keys": [made.as_dict(private=False)]}).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the issuer is warned of an old name; the broker must not be
        token = issuer.token(key=made, header={"alg": algorithm, "kid": None})
    assert checked(token, keys)["sub"] == "alice"


@pytest.mark.parametrize("audience", [AUDIENCE, "another", ["x", AUDIENCE]])
def test_one_of_the_audiences_is_enough(issuer, keys, audience):
    assert checked(issuer.token(aud=audience), keys)["sub"] == "alice"


def test_clocks_may_differ_a_little(issuer, keys):
    now = time.time()
    assert checked(issuer.token(exp=now - 20, iat=now + 20, nbf=now + 20), keys)
    for claims in ({"exp": now - 40}, {"iat": now + 40}, {"nbf": now + 40}):
        with pytest.raises(TokenRefused):
            checked(issuer.token(**claims), keys)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "https://evil.example.org"}, "iss"),
        ({"iss": None}, "MissingClaimError"),
        ({"aud": "elsewhere"}, "aud"),
        ({"aud": ["elsewhere"]}, "aud"),
        ({"aud": None}, "aud|MissingClaimError"),
        ({"aud": 7}, "aud"),
        ({"exp": 1_000_000_000}, "exp"),
        ({"exp": None}, "MissingClaimError"),
        ({"exp": "tomorrow"}, "exp"),
        ({"exp": True}, "exp"),
        ({"iat": None}, "MissingClaimError"),
        ({"iat": []}, "iat"),
        ({"nbf": 9_000_000_000}, "nbf"),
    ],
)
def test_claims_that_are_wrong_or_missing(issuer, keys, claims, reason):
    with pytest.raises(TokenRefused, match=reason):
        checked(issuer.token(**claims), keys)


def test_a_token_without_a_signature_or_with_a_shared_secret_is_refused(issuer, keys):
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": time.time(), "exp": time.time() + 60}
    public = issuer.keys["first"].as_pem(private=False)
    forged = [f"{encoded({'alg': name})}.{encoded(claims)}." for name in ("none", "None", "NONE", "")]
    for algorithm, digest in (("HS256", "sha256"), ("HS512", "sha512")):
        signed = f"{encoded({'alg': algorithm, 'kid': 'first'})}.{encoded(claims)}"
        forged.append(f"{signed}.{encoded(hmac.digest(public, signed.encode(), digest))}")
    for token in forged:
        with pytest.raises(TokenRefused, match="algorithm"):
            checked(token, keys)


def test_a_secret_among_the_keys_is_not_used(issuer):
    secret = OctKey.generate_key(256)
    document = {"keys": [secret.as_dict(), *json.loads(issuer.document())["keys"]]}
    keys = parse_keys(json.dumps(document).encode())
    assert len(keys) == 1
    with pytest.raises(TokenRefused, match="algorithm"):
        checked(jwt.encode({"alg": "HS256"}, {"sub": "alice"}, secret), keys)


@pytest.mark.parametrize("other", [RSAKey.generate_key(2048), ECKey.generate_key("P-256")])
def test_a_token_signed_by_another_key_is_refused(issuer, keys, other):
    with pytest.raises(TokenRefused):
        checked(issuer.token(key=other), keys)


def test_an_unknown_key_is_distinguished_from_a_wrong_signature(issuer, keys):
    with pytest.raises(KeyUnknown):
        checked(issuer.token(header={"kid": "second"}), keys)
    with pytest.raises(KeyUnknown):
        checked(issuer.token(), SigningKeys(()))


def test_a_token_without_a_key_id_needs_a_provider_with_one_key(issuer):
    token = issuer.token(header={"kid": None})
    one = json.loads(issuer.document())["keys"][0]
    assert checked(token, parse_keys({"keys": [one]}))
    with pytest.raises(TokenRefused, match="several"):
        checked(token, parse_keys({"keys": [one, {**one, "kid": "again"}]}))


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "a.b.c",
        "....",
        "x" * (TOKEN_BYTES_MAX + 1),
        f"{encoded(['RS256'])}.{encoded({})}.x",
        f"{encoded({'alg': ['RS256']})}.{encoded({})}.x",
        f"{encoded({'alg': 'RS256', 'kid': 7})}.{encoded({})}.x",
        f"{encoded({'alg': 'RS256', 'kid': 'first', 'pad': 'x' * 20_000})}.{encoded({})}.x",
        f"{encoded({'alg': 'RS256', 'kid': 'first', 'crit': ['x'], 'x': 1})}.{encoded({})}.x",
        f"{encoded(b'[' * 30_000)}.{encoded({})}.x",
        f"{encoded({'alg': 'RS256', 'kid': 'first'})}.{encoded(b'[' * 20_000)}.AAAA",
    ],
)
def test_malformed_tokens_are_refused(keys, token):
    with pytest.raises(TokenRefused):
        checked(token, keys)


def test_a_signed_payload_that_is_no_object_is_refused(issuer, keys):
    from joserfc import jws

    for payload in (b"[]", b"7", b"{", b"[" * 40_000):
        token = jws.serialize_compact({"alg": "RS256", "kid": "first"}, payload, issuer.keys["first"])
        with pytest.raises(TokenRefused):
            checked(token, keys)


@settings(max_examples=200)
@given(place=st.integers(0, 10_000), other=st.sampled_from("AQgw0-_.~\u00e9"))
def test_a_changed_token_is_never_accepted(keys, token, place, other):
    at = place % len(token)
    changed = token[:at] + other + token[at + 1 :]
    if changed != token:
        with pytest.raises(TokenRefused):
            checked(changed, keys)


# Keys


def test_keys_that_do_not_sign_or_are_too_short_are_left_out(issuer):
    good = json.loads(issuer.document())["keys"][0]
    others = [
        {**good, "use": "enc"},
        {**good, "key_ops": ["encrypt"]},
        {**good, "n": good["n"][:100]},
        {**good, "n": "A" * 100_000},
        {**good, "n": "!"},
        {**good, "e": 7},
        {**good, "kid": 7},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "quantum"},
        "text",
    ]
    assert len(parse_keys({"keys": [*others, good]})) == 1
    for each in others:
        with pytest.raises(KeysUnusable):
            parse_keys({"keys": [each]})


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": []}',
        b"[" * 100_000,
        json.dumps({"keys": [{}] * (TOKEN_KEYS_MAX + 1)}).encode(),
    ],
)
def test_documents_without_keys(document):
    with pytest.raises(KeysUnusable):
        parse_keys(document)


# Names and scopes


def test_the_claim_that_names_the_user():
    assert token_user({"sub": "alice", "exp": 5}, NAMES) == TokenUser("alice", 5.0)
    assert token_user({"mail": "a@b", "exp": 5}, NAMES._replace(user_claim="mail")).name == "a@b"
    for name in (None, "", " ", 7, ["alice"], "a\nb", "x" * 300):
        with pytest.raises(TokenRefused, match='"sub"'):
            token_user({"sub": name, "exp": 5}, NAMES)


@pytest.mark.parametrize("scope", ["kafka other", ["other", "kafka"]])
def test_scopes_that_are_required(scope):
    names = NAMES._replace(scopes=("kafka",))
    assert token_user({"sub": "alice", "exp": 5, "scope": scope}, names).name == "alice"
    for missing in (None, "", "kafk", ["other"], [7], 7):
        with pytest.raises(TokenRefused, match="scope"):
            token_user({"sub": "alice", "exp": 5, "scope": missing}, names)


# Messages


class Verifier:
    """Knows the token `good` of alice, and `new`, whose key may be fetched."""

    def verify(self, token):
        if token == "new":
            raise KeyUnknown("its key is not one of the provider's")
        if token != "good":
            raise TokenRefused("a reason for the log")
        return TokenUser("alice", 100.0)

    def remaining_ms(self, user):
        return 1_000.0 * user.expires_s


def receive(message):
    return OAuthBearerLogin(Verifier()).receive(message)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer good\x01\x01",
        b"n,a=alice,\x01auth=bearer good\x01\x01",
        b"n,,\x01traceId=7f\x01auth=Bearer  good\x01host=x\x01\x01",
    ],
)
def test_messages_of_clients(message):
    assert receive(message) == Proved("alice", lifetime_ms=100_000.0)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer good\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"p=x,,\x01auth=Bearer good\x01\x01",
        b"n,a=bob,\x01auth=Bearer good\x01\x01",
        b"n,a=\xff,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer good\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * (80 << 10) + b"\x01\x01",
    ],
)
def test_malformed_messages(message):
    with pytest.raises(LoginFailed):
        receive(message)


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda part: b"n,,\x01auth=" + part + b"\x01\x01"))
def test_hostile_messages_only_fail(message):
    try:
        assert isinstance(receive(message), Rejection)
    except LoginFailed:
        pass


def test_a_refused_token_ends_with_one_more_message():
    session = SaslSession(0.0)
    session.choose("OAUTHBEARER", OAuthBearerLogin(Verifier()))
    unknown = session.receive(b"n,,\x01auth=Bearer new\x01\x01")
    assert isinstance(unknown, Rejection)
    assert unknown.keys_may_change
    assert session.state is SaslState.MESSAGE, "the message may be looked at again"
    refused = session.receive(b"n,,\x01auth=Bearer bad\x01\x01")
    assert refused == Rejection(REFUSAL, "the token is refused: a reason for the log")
    session.reject(refused)
    assert {key for key in ApiKey if session.refusal_of(key, 1.0) is None} == {ApiKey.SASL_AUTHENTICATE}
    for message in (b"\x01", b"n,,\x01auth=Bearer good\x01\x01"):
        with pytest.raises(LoginFailed, match="a reason for the log"):
            session.receive(message)
    session.refuse()
    assert session.state is SaslState.REFUSED


# Fetches


def test_when_keys_are_fetched():
    refresh = KeyRefresh(RefreshTimes(interval_ms=1_000.0, retry_ms=10.0, retry_ms_max=35.0))
    assert refresh.may_bring_unknown(0.0), "none was fetched yet"
    refresh.began(0.0)
    assert refresh.may_bring_unknown(0.0), "one is under way"
    assert [refresh.failed(), refresh.failed(), refresh.failed(), refresh.failed()] == [10.0, 20.0, 35.0, 35.0]
    assert refresh.succeeded() == 1_000.0
    assert not refresh.may_bring_unknown(TOKEN_KEYS_UNKNOWN_INTERVAL_MS - 1)
    assert refresh.may_bring_unknown(TOKEN_KEYS_UNKNOWN_INTERVAL_MS)
    assert refresh.failed() == 10.0


# Configs

LISTENER = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER"}
URL = "sasl.oauthbearer.jwks.endpoint.url"


@pytest.mark.parametrize("url", ["https://login.example.org/keys", "http://127.0.0.1:8080/keys", "file:///etc/keys"])
def test_places_of_keys(url):
    assert BrokerConfig.from_texts({**LISTENER, URL: url}).sasl.oauth.keys_url == url


@pytest.mark.parametrize(
    "url",
    ["http://login.example.org/keys", "file://host/x", "keys.json", "https://", "ftp://x/y", "http://[::1", "x:y"],
)
def test_places_that_are_refused(url):
    with pytest.raises(ConfigError, match="must"):
        BrokerConfig.from_texts({**LISTENER, URL: url})


def test_a_listener_with_tokens_needs_keys():
    with pytest.raises(ConfigError, match="jwks_uri"):
        BrokerConfig.from_texts(LISTENER)


def test_the_configs_of_a_java_broker_are_accepted():
    kafka = "org.apache.kafka.common.security.oauthbearer"
    found = BrokerConfig.from_texts(
        {
            **LISTENER,
            URL: "file:///keys",
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{kafka}.OAuthBearerLoginModule required;",
            "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": (
                f"{kafka}.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.expected.audience": "one,two",
            "sasl.oauthbearer.clock.skew.seconds": "5",
        }
    )
    assert found.sasl.oauth.audiences == ("one", "two")
    assert found.sasl.oauth.clock_skew_s == 5
    assert found.sasl.session_ms_max in (None, inf)


def test_a_listener_may_have_an_identity_provider_of_its_own():
    found = BrokerConfig.from_texts(
        {
            **LISTENER,
            "listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": "file:///own",
            "listener.name.other.sasl.oauthbearer.expected.audience": "a,b",
            "listener.name.other.headrace.sasl.oauthbearer.required.scopes": "kafka",
            "sasl.oauthbearer.sub.claim.name": "mail",
        }
    ).sasl
    own, other, rest = (found.oauth_of(name) for name in ("SASL_PLAINTEXT", "OTHER", "REST"))
    assert [each.keys_url for each in (own, other, rest)] == ["file:///own", None, None]
    assert [each.audiences for each in (own, other, rest)] == [(), ("a", "b"), ()]
    assert [each.scopes for each in (own, other, rest)] == [(), ("kafka",), ()]
    assert [each.user_claim for each in (own, other, rest)] == ["mail"] * 3


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("listener.name.x.sasl.oauthbearer.jwks.endpoint.url", "http://login.example.org/keys", "must begin"),
        ("listener.name.x.oauthbearer.sasl.oauthbearer.clock.skew.seconds", "-1", "whole number"),
        ("listener.name.x.sasl.oauthbearer.unknown", "x", "unknown config"),
        ("listener.name.x.plain.sasl.oauthbearer.expected.audience", "x", "unknown config"),
    ],
)
def test_wrong_configs_of_a_listener(name, text, match):
    with pytest.raises(ConfigError, match=match):
        BrokerConfig.from_texts({**LISTENER, URL: "file:///keys", name: text})

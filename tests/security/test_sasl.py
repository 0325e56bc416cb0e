"""The handshake of SASL and its mechanisms as state machines: right and wrong logins, wrong orders, hostile bytes."""

import base64
from hashlib import pbkdf2_hmac
from math import inf

import pytest
import scramp
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.access.login_throttle import LoginThrottle
from headrace.core.access.plain import PlainLogin
from headrace.core.access.sasl import TRANSITIONS, Challenge, LoginFailed, Proved, SaslEvent, SaslSession, SaslState
from headrace.core.access.scram import ScramLogin, StoredCredential, credential_of, mock_credential
from headrace.model.access import ScramMechanism
from headrace.model.limits import LOGIN_FAILURES_FORGOTTEN_MS, LOGIN_FAILURES_FREE, LOGIN_FAILURES_KEPT_MAX
from headrace.wire.apis import ApiKey

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
SECRET = b"s" * 32


class Users:
    """Users with the password `pencil`."""

    def __init__(self, *names):
        self.names = names

    def credential(self, mechanism, user):
        if user not in self.names:
            return None
        salted = pbkdf2_hmac(mechanism.hash_name, b"pencil", b"a salt of alice!", 4_096)
        return credential_of(mechanism, b"a salt of alice!", salted, 4_096)

    def mock(self, mechanism, user):
        return mock_credential(mechanism, user, SECRET, self.credential(mechanism, self.names[0]))


def exchange(mechanism=SHA_256, users=None):
    return ScramLogin(mechanism, users or Users("alice"), nonce="server")


def log_in(mechanism, user, password, users=None):
    """A login by another implementation, which checks what the broker proves."""
    server = exchange(mechanism, users)
    client = scramp.ScramClient([mechanism.label], user, password)
    client.set_server_first(server.receive(client.get_client_first().encode()).message.decode())
    proved = server.receive(client.get_client_final().encode())
    client.set_server_final(proved.message.decode())
    return proved.user


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("user", ["alice", "a,b=c", "Grüße"])
def test_another_implementation_logs_in(mechanism, user):
    assert log_in(mechanism, user, "pencil", Users(user)) == user


def test_the_example_of_rfc_7677():
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = pbkdf2_hmac("sha256", b"pencil", salt, 4_096)

    class One(Users):
        def credential(self, mechanism, user):
            return credential_of(mechanism, salt, salted, 4_096)

    server = ScramLogin(SHA_256, One("user"), nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first = server.receive(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").message
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert server.receive(final) == Proved("user", b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", inf)


@pytest.mark.parametrize(("user", "password"), [("alice", "Pencil"), ("bob", "pencil"), ("bob", "")])
def test_a_wrong_password_and_an_unknown_user_fail_alike_at_the_end(user, password):
    with pytest.raises(LoginFailed, match="wrong user or password"):
        log_in(SHA_256, user, password or "x")


def test_the_salt_of_an_unknown_user_is_always_the_same_and_looks_like_others():
    def first_message(user):
        return exchange().receive(f"n,,n={user},r=nonce".encode()).message

    assert first_message("bob") == first_message("bob")
    assert first_message("bob") != first_message("carol")
    assert len(first_message("bob")) == len(first_message("alice"))
    like = StoredCredential(b"x" * 77, b"", b"", 8_000)
    found = mock_credential(SHA_512, "bob", SECRET, like)
    assert (len(found.salt), found.iterations) == (77, 8_000)
    assert found != mock_credential(SHA_512, "bob", b"another secret", like)


FIRST = "n,,n=alice,r=client"


def final(**changed):
    """A final message with a proof that is right but for what was changed."""
    server = exchange()
    client = scramp.ScramClient(["SCRAM-SHA-256"], "alice", "pencil", c_nonce="client")
    client.get_client_first()
    client.set_server_first(server.receive(FIRST.encode()).message.decode())
    parts = dict(part.split("=", 1) for part in client.get_client_final().split(","))
    return server, ",".join(f"{name}={text}" for name, text in (parts | changed).items()).encode()


def test_the_message_that_the_next_test_changes_is_right():
    server, message = final()
    assert server.receive(message).user == "alice"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"r": "client"}, "nonce"),
        ({"r": "clientservex"}, "nonce"),
        ({"r": "server"}, "nonce"),
        ({"c": "eSws"}, "channel binding"),
        ({"p": "AAAA"}, "length"),
        ({"p": base64.b64encode(bytes(32)).decode()}, "wrong user or password"),
        ({"p": "====="}, "base64"),
        ({"p": ""}, "malformed"),
    ],
)
def test_a_changed_final_message_is_refused(changed, reason):
    server, message = final(**changed)
    with pytest.raises(LoginFailed, match=reason):
        server.receive(message)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "malformed"),
        (b"p=tls-unique,,n=alice,r=x", "malformed"),
        (b"n,,n=,r=x", "malformed"),
        (b"n,,n=alice", "malformed"),
        (b"n,,n=alice,r=", "malformed"),
        (b"n,,n=al=ice,r=x", "malformed"),
        (b"n,a=bob,n=alice,r=x", "another"),
        (b"n,,n=alice,r=x,m=ext", "extension"),
        (b"n,,n=alice,r=x,tokenauth=true", "malformed|tokens"),
        (b"\xff\xfe", "UTF-8"),
        (b"n,,n=" + b"a" * 300 + b",r=x", "too long"),
        (b"n,,n=alice,r=" + b"x" * 9_000, "too long"),
    ],
)
def test_a_wrong_first_message_is_refused(message, reason):
    with pytest.raises(LoginFailed, match=reason):
        exchange().receive(message)


def test_acting_as_oneself_is_allowed():
    assert isinstance(exchange().receive(b"n,a=alice,n=alice,r=x"), Challenge)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(st.binary(max_size=60), st.text("n,=arcp:-_ab2C3D", max_size=60).map(str.encode)), max_size=3)
)
def test_hostile_messages_only_fail(messages):
    server = exchange()
    for message in messages:
        try:
            assert isinstance(server.receive(message), Challenge)
        except LoginFailed:
            return


def test_plain():
    assert PlainLogin({"alice": "pw"}).receive(b"\0alice\0pw") == Proved("alice")
    assert PlainLogin({"alice": "pw"}).receive(b"alice\0alice\0pw") == Proved("alice")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0alice\0",
        b"\0\0pw",
        b"\0alice\0PW",
        b"\0bob\0pw",
        b"bob\0alice\0pw",
        b"\0alice\0pw\0",
        b"\0alice",
        b"\0al\xffice\0pw",
        b"\0alice\0" + b"x" * 9_000,
    ],
)
def test_plain_that_is_wrong(message):
    with pytest.raises(LoginFailed):
        PlainLogin({"alice": "pw"}).receive(message)


# The session


def test_every_state_but_the_last_has_a_way_to_be_refused():
    assert {state for state, event in TRANSITIONS if event is SaslEvent.REFUSAL} == set(SaslState) - {SaslState.REFUSED}


def authenticated(user="alice", lifetime_ms=inf):
    session = SaslSession(0.0)
    session.choose("PLAIN", PlainLogin({user: "pw"}))
    session.admit(session.receive(f"\0{user}\0pw".encode()), 1_000.0, lifetime_ms)
    return session


def test_what_a_client_may_send_before_and_after():
    session = SaslSession(0.0)
    every = [int(key) for key in ApiKey]

    def allowed(now_ms=1_000.0):
        return {ApiKey(key) for key in every if session.refusal_of(key, now_ms) is None}

    assert allowed() == {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}
    session.choose("PLAIN", PlainLogin({"alice": "pw"}))
    assert allowed() == {ApiKey.SASL_AUTHENTICATE}
    proved = session.receive(b"\0alice\0pw")
    assert allowed() == {ApiKey.SASL_AUTHENTICATE}, "a proof counts when the client is admitted"
    session.admit(proved, 1_000.0, 500.0)
    assert allowed(1_499.0) == set(ApiKey)
    assert allowed(1_500.0) == {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}
    session.refuse()
    assert allowed() == set()


def test_authenticating_again_keeps_name_and_mechanism():
    session = authenticated(lifetime_ms=500.0)
    session.choose("PLAIN", PlainLogin({"alice": "new"}))
    session.admit(session.receive(b"\0alice\0new"), 1_600.0, 500.0)
    assert session.refusal_of(ApiKey.PRODUCE, 2_000.0) is None
    session.choose("PLAIN", PlainLogin({"bob": "pw"}))
    with pytest.raises(LoginFailed, match="instead of 'alice'"):
        session.receive(b"\0bob\0pw")
    other = authenticated()
    with pytest.raises(LoginFailed, match="instead of PLAIN"):
        other.choose("SCRAM-SHA-256", exchange())
    assert other.state is SaslState.REFUSED


# The throttle


def test_logins_wait_longer_after_each_failure_and_only_those_of_that_user_and_address():
    throttle, now_ms = LoginThrottle(), 0.0
    for _ in range(LOGIN_FAILURES_FREE):
        assert throttle.wait_ms("alice", "10.0.0.1", now_ms) == 0.0
        throttle.failed("alice", "10.0.0.1", now_ms)
    waits = []
    for _ in range(4):
        waits.append(throttle.wait_ms("alice", "10.0.0.1", now_ms))
        throttle.failed("alice", "10.0.0.1", now_ms)
    assert waits == [0.0, 200.0, 600.0, 1_400.0]
    assert throttle.wait_ms("alice", "10.0.0.2", now_ms) == 0.0
    assert throttle.wait_ms("bob", "10.0.0.1", now_ms) == 0.0


def test_too_many_logins_at_once_are_refused_and_time_heals():
    throttle = LoginThrottle()
    for _ in range(30):
        throttle.failed("alice", "10.0.0.1", 0.0)
    waits = [throttle.wait_ms("alice", "10.0.0.1", 0.0) for _ in range(4)]
    assert waits == [0.0, 5_000.0, None, None]
    assert throttle.wait_ms("alice", "10.0.0.1", 10_001.0 + LOGIN_FAILURES_FORGOTTEN_MS) == 0.0
    throttle.failed("alice", "10.0.0.1", 0.0)
    throttle.succeeded("alice", "10.0.0.1")
    assert not throttle._failures


def test_the_number_of_remembered_failures_is_limited():
    throttle = LoginThrottle()
    for number in range(LOGIN_FAILURES_KEPT_MAX + 5):
        throttle.failed(f"user{number}", "10.0.0.1", 0.0)
    assert len(throttle._failures) == LOGIN_FAILURES_KEPT_MAX

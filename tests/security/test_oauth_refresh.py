"""Keys of an identity provider on virtual ports: fetched at intervals, after failures, and while logins wait."""

import pytest

from headrace.model.configs.definition import ConfigError
from headrace.model.limits import TOKEN_KEYS_MS_MAX, TOKEN_KEYS_UNKNOWN_INTERVAL_MS
from headrace.wire.apis import ApiKey
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.virtual import HOST, PORT, Client, VirtualBroker

from .token_issuer import AUDIENCE, TokenIssuer

URL = "https://login.example.org/keys"
REFUSAL = b'{"status":"invalid_token"}'
HOUR_MS = 3_600_000
SETTINGS = {
    "listeners": f"SASL://{HOST}:{PORT}",
    "advertised.listeners": f"SASL://{HOST}:{PORT}",
    "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": URL,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
    "connection.failed.authentication.delay.ms": "0",
}


@pytest.fixture(scope="module")
def issuer():
    return TokenIssuer()


def started(issuer, **settings):
    """A broker that has fetched the keys; the provider serves the first key only."""
    broker = VirtualBroker(settings={**SETTINGS, **settings}, boot=False)
    publish(broker, issuer)
    broker.boot()
    broker.run_until(lambda: keys_of(broker))
    return broker


def publish(broker, issuer):
    broker.machine.network.documents[URL] = issuer.document()


def keys_of(broker):
    return len(broker.node.broker.authentication.token_keys("")._keys)


class Login(Client):
    """A client that logs in with tokens of the broker's own time."""

    def begin(self, token):
        handshake = self.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="OAUTHBEARER"))
        assert handshake.error_code == 0
        message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
        return self.send(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=message))

    def log_in(self, token):
        response = self.wait(self.begin(token))
        return response.error_code == 0 and not response.auth_bytes


def token_of(broker, issuer, *, seconds=3_600, **options):
    now_s = broker.machine.clock.wall_ms() // 1_000
    return issuer.token(iat=now_s, exp=now_s + seconds, **options)


def log_in(broker, token):
    client = Login(broker)
    accepted = client.log_in(token)
    client.close()
    return accepted


def test_keys_are_fetched_again_after_an_hour(issuer):
    broker = started(issuer)
    other = TokenIssuer()
    publish(broker, other)
    assert log_in(broker, token_of(broker, issuer))
    broker.pass_time(HOUR_MS)
    assert not log_in(broker, token_of(broker, issuer)), "the provider has withdrawn this key"
    assert log_in(broker, token_of(broker, other))


def test_a_provider_that_fails_is_asked_again_and_the_keys_stay(issuer):
    broker = started(issuer)
    del broker.machine.network.documents[URL]
    broker.pass_time(HOUR_MS)
    for _ in range(3):
        broker.pass_time(10_000)
        assert log_in(broker, token_of(broker, issuer))
    told = [line for line in broker.log_lines if "cannot be read" in line]
    assert len(told) == 1
    assert "jwks.endpoint.url" in told[0]
    broker.machine.network.documents[URL] = b"{}"
    broker.pass_time(10_000)
    assert log_in(broker, token_of(broker, issuer)), "a document without keys does not replace the keys"
    other = TokenIssuer()
    publish(broker, other)
    broker.pass_time(10_000)
    assert log_in(broker, token_of(broker, other))


def test_a_login_waits_for_a_fetch_no_longer_than_its_limit(issuer):
    broker = started(issuer)
    broker.pass_time(TOKEN_KEYS_UNKNOWN_INTERVAL_MS)
    broker.machine.spawner.hold(name_contains="_fetch")
    client = Login(broker)
    waiting = client.begin(token_of(broker, issuer, header={"kid": "unknown"}))
    broker.pass_time(TOKEN_KEYS_MS_MAX - 100)
    assert not client.has_answer(waiting)
    broker.pass_time(200)
    assert client.wait(waiting).auth_bytes == REFUSAL
    client.close()
    broker.machine.spawner.release()
    broker.steps()
    assert log_in(broker, token_of(broker, issuer))


def test_waiting_logins_are_limited_and_one_fetch_serves_all(issuer, monkeypatch):
    monkeypatch.setattr("headrace.broker.token_keys.TOKEN_LOGINS_WAITING_MAX", 2)
    broker = started(issuer)
    broker.pass_time(TOKEN_KEYS_UNKNOWN_INTERVAL_MS)
    broker.machine.spawner.hold(name_contains="_fetch")
    renewed = TokenIssuer()
    renewed.add_key("second")
    publish(broker, renewed)
    clients = [Login(broker) for _ in range(3)]
    token = token_of(broker, renewed, key_id="second")
    asked = [client.begin(token) for client in clients]
    broker.steps()
    assert clients[2].wait(asked[2]).auth_bytes == REFUSAL
    broker.machine.spawner.release()
    for client, number in zip(clients[:2], asked, strict=False):
        response = client.wait(number)
        assert (response.error_code, bytes(response.auth_bytes)) == (0, b"")


def test_a_client_that_leaves_while_its_login_waits_does_no_harm(issuer):
    broker = started(issuer)
    broker.pass_time(TOKEN_KEYS_UNKNOWN_INTERVAL_MS)
    broker.machine.spawner.hold(name_contains="_fetch")
    client = Login(broker)
    client.begin(token_of(broker, issuer, header={"kid": "unknown"}))
    broker.steps()
    client.close()
    broker.steps()
    broker.machine.spawner.release()
    broker.pass_time(TOKEN_KEYS_MS_MAX)
    assert log_in(broker, token_of(broker, issuer))
    assert broker.metrics.parked_requests == 0


def test_a_session_ends_when_its_token_expires_and_a_new_token_prolongs_it(issuer):
    broker = started(issuer, **{"sasl.oauthbearer.clock.skew.seconds": "0", "connections.max.reauth.ms": "600000"})
    metadata = MetadataRequest(topics=())
    client = Login(broker)
    for seconds, lifetime_ms in ((60, 60_000), (3_600, 600_000)):
        response = client.wait(client.begin(token_of(broker, issuer, seconds=seconds)))
        assert lifetime_ms - 1_000 <= response.session_lifetime_ms <= lifetime_ms
        broker.pass_time(50_000)
        assert client.ask(ApiKey.METADATA, 12, metadata).brokers
    broker.pass_time(549_000)
    assert client.ask(ApiKey.METADATA, 12, metadata).brokers
    broker.pass_time(2_000)
    client.send(ApiKey.METADATA, 12, metadata)
    client.wait_closed()
    assert (broker.metrics.sessions_expired, broker.metrics.protocol_errors) == (1, 0)


def test_a_broker_warns_of_tokens_for_other_services(issuer):
    def told(broker):
        return [line for line in broker.log_lines if "expected.audience" in line]

    assert told(started(issuer)) == []
    assert len(told(started(issuer, **{"sasl.oauthbearer.expected.audience": ""}))) == 1


def test_a_broker_without_the_package_says_what_to_install(issuer, monkeypatch):
    monkeypatch.setattr("headrace.broker.token_keys.is_installed", lambda: False)
    with pytest.raises(ConfigError, match=r"headrace\[auth\]"):
        started(issuer)

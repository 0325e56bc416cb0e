"""SASL at a broker: stock clients with each mechanism, refused logins, and requests in the wrong order."""

import struct
import time

import confluent_kafka
import pytest

from headrace.client import Admin, NewScramUser, Producer, ScramMechanism
from headrace.client.errors import AuthenticationFailed
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey

from .certificates import Authority
from .raw import Raw
from .stock import CLIENTS, WAIT_MS, own, own_settings

pytestmark = pytest.mark.process

PASSWORD = "a secret, with = and ,"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="a secret, with = and ,";'
RECORDS = [b"first", b"second" * 100, b"third"]
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


class Secured:
    """A broker with the listeners LOCAL (without security), SASL_PLAINTEXT and SASL_SSL."""

    def __init__(self, broker):
        self.broker = broker
        self.local, self.plaintext, self.tls = broker._runner._node.addresses


@pytest.fixture(scope="module")
def secured(authority):
    configs = {
        **authority.configs(),
        "listeners": "LOCAL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "listener.security.protocol.map": "LOCAL:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "sasl.jaas.config": JAAS,
        "connection.failed.authentication.delay.ms": "10",
    }
    with EmbeddedBroker(config=configs) as broker:
        found = Secured(broker)
        with Admin(found.local) as admin:
            users = [NewScramUser(name="alice", password=PASSWORD, mechanism=each) for each in (SHA_256, SHA_512)]
            assert not any(outcome.error for outcome in admin.alter_scram_users(users).values())
        yield found


def settings(authority, mechanism, *, tls=False, user="alice", password=PASSWORD):
    found = {
        "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }
    return found | ({"ssl.ca.location": authority.ca} if tls else {})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("client", CLIENTS)
def test_clients_log_in_with_each_mechanism(secured, authority, client, mechanism):
    topic = f"{client}-{mechanism.lower()}"
    found = CLIENTS[client](secured.plaintext, topic, RECORDS, settings(authority, mechanism))
    assert found == RECORDS


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_log_in_over_tls(secured, authority, client):
    topic = f"tls-{client}"
    found = CLIENTS[client](secured.tls, topic, RECORDS, settings(authority, "SCRAM-SHA-512", tls=True))
    assert found == RECORDS


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("stranger", PASSWORD)])
def test_wrong_credentials_are_refused(secured, authority, mechanism, user, password):
    wrong = own_settings(settings(authority, mechanism, user=user, password=password))
    with Admin(secured.plaintext, **wrong) as admin:
        with pytest.raises(AuthenticationFailed, match="invalid credentials"):
            admin.cluster()


def test_librdkafka_learns_that_its_password_is_wrong(secured, authority):
    errors: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": secured.plaintext,
            "error_cb": errors.append,
            **settings(authority, "SCRAM-SHA-512", password="wrong"),
        }
    )
    deadline = time.monotonic() + WAIT_MS / 1000
    while not any(each.code() == confluent_kafka.KafkaError._AUTHENTICATION for each in errors):
        assert time.monotonic() < deadline, errors
        producer.poll(0.1)


def test_a_new_password_counts_at_once_and_a_removed_user_is_gone(secured, authority):
    def log_in(password):
        with Admin(
            secured.plaintext, **own_settings(settings(authority, "SCRAM-SHA-256", user="carol", password=password))
        ) as admin:
            return admin.cluster().cluster_id

    with Admin(secured.local) as admin:
        for password in ("one", "two"):
            admin.alter_scram_users([NewScramUser(name="carol", password=password, mechanism=SHA_256)])
            assert log_in(password)
        with pytest.raises(AuthenticationFailed):
            log_in("one")
        described = admin.scram_users(["carol"])["carol"]
        assert [(each.mechanism, each.iterations) for each in described] == [(SHA_256, 4_096)]
        assert not admin.alter_scram_users(deleted=[("carol", SHA_256)])["carol"].error
        assert admin.alter_scram_users(deleted=[("carol", SHA_256)])["carol"].error == ErrorCode.RESOURCE_NOT_FOUND
        assert admin.scram_users(["carol"])["carol"] == ()
    with pytest.raises(AuthenticationFailed):
        log_in("two")


def test_users_survive_a_restart(tmp_path, authority):
    configs = {
        "listeners": "LOCAL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "LOCAL:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
    }
    with EmbeddedBroker(data_dir=str(tmp_path), config=configs) as broker:
        with Admin(broker._runner._node.addresses[0]) as admin:
            admin.alter_scram_users([NewScramUser(name="alice", password=PASSWORD, mechanism=SHA_512)])
    with EmbeddedBroker(data_dir=str(tmp_path), config=configs) as broker:
        address = broker._runner._node.addresses[1]
        assert own(address, "after", RECORDS, settings(authority, "SCRAM-SHA-512")) == RECORDS


def test_clients_authenticate_again_while_they_produce(authority):
    configs = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": JAAS,
        "connections.max.reauth.ms": "1000",
    }
    with EmbeddedBroker(config=configs) as broker:
        node = broker._runner._node
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, **settings(authority, "PLAIN")}
        )
        failures: list[object] = []
        with Producer(bootstrap_servers=broker.bootstrap_servers, **own_settings(settings(authority, "PLAIN"))) as mine:
            deadline = time.monotonic() + WAIT_MS / 1000
            while node.metrics.logins < 12:
                assert time.monotonic() < deadline, "clients do not authenticate again"
                producer.produce("again", b"x", on_delivery=lambda error, _message: failures.append(error))
                producer.poll(0.02)
                mine.send("again", b"y").result(timeout_ms=WAIT_MS)
            assert producer.flush(WAIT_MS / 1000) == 0
        assert not any(failures)
        assert node.metrics.protocol_errors == 0


# Requests by hand


def test_other_requests_close_a_connection_that_has_not_authenticated(secured):
    for key, version in (
        (ApiKey.METADATA, 0),
        (ApiKey.PRODUCE, 3),
        (ApiKey.CREATE_TOPICS, 2),
        (ApiKey.SASL_AUTHENTICATE, 1),
    ):
        with Raw(secured.plaintext) as raw:
            raw.send(key, version, bytes(100))
            assert raw.is_closed()


def test_a_large_request_closes_a_connection_that_has_not_authenticated(secured):
    with Raw(secured.plaintext) as raw:
        assert raw.handshake().error_code == 0
        raw.socket.sendall(struct.pack(">i", (512 << 10) + 100) + struct.pack(">hhih", 36, 1, 1, -1) + bytes(20_000))
        assert raw.is_closed()


def test_a_mechanism_that_is_not_served_is_refused_with_those_that_are(secured):
    with Raw(secured.plaintext) as raw:
        response = raw.handshake("GSSAPI")
        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert list(response.mechanisms) == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
        assert raw.is_closed()


def test_a_failed_login_ends_the_connection_and_names_no_reason(secured):
    for message in (b"\0alice\0wrong", b"\0stranger\0x", b"nonsense"):
        with Raw(secured.plaintext) as raw:
            assert raw.handshake().error_code == 0
            response = raw.authenticate(message)
            assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert response.error_message == "Authentication failed: invalid credentials"
            assert raw.is_closed()


def test_sasl_on_a_listener_without_it_is_an_error(secured):
    with Raw(secured.local) as raw:
        assert raw.handshake().error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert raw.authenticate(b"\0alice\0x").error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_the_principal_may_not_change(secured):
    with Raw(secured.plaintext) as raw:
        assert raw.handshake().error_code == 0
        assert raw.authenticate(f"\0alice\0{PASSWORD}".encode()).error_code == 0
        assert raw.handshake("SCRAM-SHA-256").error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert raw.is_closed()


def test_guessing_does_not_delay_the_user_for_long_and_others_not_at_all(secured, authority):
    for number in range(8):
        with Raw(secured.plaintext) as raw:
            raw.handshake()
            assert raw.authenticate(b"\0victim\0guess%d" % number).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert own(secured.plaintext, "beside-guessing", RECORDS, settings(authority, "PLAIN")) == RECORDS


INSTEAD_OF_A_HANDSHAKE = [
    b"\0alice\0" + PASSWORD.encode(),  # the bare token of PLAIN, as before Kafka 1.0
    b"n,,n=alice,r=nonce",
    b"\x60\x82\x01\x00" + bytes(252),  # a token of GSSAPI
    b"\x16\x03\x01\x00\x05hello",  # TLS at a listener without it
    b"GET / HTTP/1.1",
]


@pytest.mark.parametrize("token", INSTEAD_OF_A_HANDSHAKE)
def test_tokens_instead_of_a_handshake_close_the_connection(secured, authority, token):
    with Raw(secured.plaintext) as raw, Raw(secured.plaintext) as beside:
        assert beside.handshake().error_code == 0
        raw.socket.sendall(struct.pack(">i", len(token)) + token)
        assert raw.is_closed()
        assert beside.authenticate(f"\0alice\0{PASSWORD}".encode()).error_code == 0


def test_a_second_handshake_before_the_login_closes_the_connection(secured):
    with Raw(secured.plaintext) as raw:
        assert raw.handshake("PLAIN").error_code == 0
        with pytest.raises((EOFError, ConnectionResetError)):
            raw.handshake("SCRAM-SHA-256")


def test_a_token_after_the_login_is_refused(secured):
    with Raw(secured.plaintext) as raw:
        assert raw.handshake().error_code == 0
        assert raw.authenticate(f"\0alice\0{PASSWORD}".encode()).error_code == 0
        for token in (f"\0alice\0{PASSWORD}", "\0mallory\0x"):
            assert raw.authenticate(token.encode()).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_login_without_tls_gets_nothing_at_a_listener_with_tls(secured, authority):
    with Raw(secured.tls) as raw:
        with pytest.raises((EOFError, ConnectionResetError, struct.error)):
            assert raw.handshake().error_code
    assert own(secured.tls, "beside-plain", RECORDS, settings(authority, "PLAIN", tls=True)) == RECORDS

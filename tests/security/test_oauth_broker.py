"""OAUTHBEARER at a broker: stock clients, refused tokens, new keys of the provider, and sessions that end."""

import asyncio
import time

import aiokafka
import aiokafka.abc
import confluent_kafka
import kafka
import kafka.net.sasl.oauth
import pytest
from joserfc.jwk import RSAKey

from headrace.client import Admin, Consumer, Producer
from headrace.client.errors import AuthenticationFailed
from headrace.model.errors import ErrorCode
from headrace.model.limits import TOKEN_BYTES_MAX
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey

from .raw import Raw
from .stock import WAIT_MS, WAIT_S
from .token_issuer import AUDIENCE, ISSUER, KeyServer, TokenIssuer

pytestmark = pytest.mark.process

RECORDS = [b"first", b"second" * 100, b"third"]
REFUSAL = '{"status":"invalid_token"}'


@pytest.fixture(scope="module")
def issuer():
    return TokenIssuer()


@pytest.fixture(scope="module")
def server(issuer):
    found = KeyServer(issuer)
    yield found
    found.stop()


def configs(url, **more):
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "connection.failed.authentication.delay.ms": "10",
        **more,
    }


@pytest.fixture(scope="module")
def broker(server):
    with EmbeddedBroker(config=configs(server.url)) as found:
        yield found


# Stock clients


def librdkafka_configs(issuer, **claims):
    def token(_config):
        return issuer.token(**claims), time.time() + 3_600

    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": token}


def librdkafka(bootstrap, topic, issuer):
    settings = librdkafka_configs(issuer)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})
    for record in RECORDS:
        producer.produce(topic, record)
    assert producer.flush(WAIT_S) == 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"g-{topic}", "auto.offset.reset": "earliest", **settings}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    try:
        while len(found) < len(RECORDS):
            message = consumer.poll(WAIT_S)
            assert message is not None, "no record within a minute"
            assert message.error() is None, message.error()
            found.append(message.value())
    finally:
        consumer.close()
    return found


def kafka_python(bootstrap, topic, issuer):
    class Provider(kafka.net.sasl.oauth.AbstractTokenProvider):
        def token(self):
            return issuer.token()

    common = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": Provider(),
    }
    producer = kafka.KafkaProducer(**common)
    for record in RECORDS:
        producer.send(topic, record)
    producer.flush(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, group_id=f"g-{topic}", auto_offset_reset="earliest", consumer_timeout_ms=WAIT_MS, **common
    )
    found: list[bytes] = []
    try:
        for message in consumer:
            found.append(message.value)
            if len(found) == len(RECORDS):
                break
    finally:
        consumer.close()
    return found


def aiokafka_client(bootstrap, topic, issuer):
    class Provider(aiokafka.abc.AbstractTokenProvider):
        async def token(self):
            return issuer.token()

    async def run():
        common = {
            "bootstrap_servers": bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": Provider(),
        }
        async with aiokafka.AIOKafkaProducer(**common) as producer:
            for record in RECORDS:
                await producer.send_and_wait(topic, record)
        found: list[bytes] = []
        async with aiokafka.AIOKafkaConsumer(
            topic, group_id=f"g-{topic}", auto_offset_reset="earliest", **common
        ) as consumer:
            while len(found) < len(RECORDS):
                found.append((await asyncio.wait_for(consumer.getone(), WAIT_S)).value)
        return found

    return asyncio.run(run())


def own_settings(token):
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token": token if callable(token) else lambda: token,
    }


def own(bootstrap, topic, issuer):
    common = {"bootstrap_servers": bootstrap, **own_settings(issuer.token)}
    with Producer(**common) as producer:
        for record in RECORDS:
            producer.send(topic, record)
        producer.flush()
    found: list[bytes] = []
    with Consumer(topic, group_id=f"g-{topic}", auto_offset_reset="earliest", **common) as consumer:
        while len(found) < len(RECORDS):
            found += [record.value for record in consumer.poll(timeout_ms=WAIT_MS)]
    return found


@pytest.mark.parametrize("client", [librdkafka, kafka_python, aiokafka_client, own])
def test_clients_log_in_with_tokens(broker, issuer, client):
    assert client(broker.bootstrap_servers, client.__name__, issuer) == RECORDS


def log_in(broker, token):
    with Admin(broker.bootstrap_servers, **own_settings(token)) as admin:
        return admin.cluster().cluster_id


# Refusals


@pytest.mark.parametrize(
    "claims", [{"exp": 1_000_000_000}, {"aud": "elsewhere"}, {"iss": "https://evil.example.org"}, {"sub": ""}]
)
def test_tokens_that_are_refused(broker, issuer, claims):
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        log_in(broker, issuer.token(**claims))


def test_a_token_of_another_provider_is_refused(broker, issuer):
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        log_in(broker, issuer.token(key=RSAKey.generate_key(2048)))


def test_librdkafka_learns_that_its_token_is_refused(broker, issuer):
    errors: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "error_cb": errors.append,
            **librdkafka_configs(issuer, aud="elsewhere"),
        }
    )
    deadline = time.monotonic() + WAIT_S
    while not any(each.code() == confluent_kafka.KafkaError._AUTHENTICATION for each in errors):
        assert time.monotonic() < deadline, errors
        producer.poll(0.1)


def first_message(token):
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def test_a_refusal_is_json_and_ends_when_the_client_has_confirmed_it(broker, issuer):
    with Raw(broker.bootstrap_servers) as raw:
        assert raw.handshake("OAUTHBEARER").error_code == 0
        refused = raw.authenticate(first_message(issuer.token(aud="elsewhere")))
        assert (refused.error_code, bytes(refused.auth_bytes)) == (0, REFUSAL.encode())
        ended = raw.authenticate(b"\x01")
        assert (ended.error_code, ended.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSAL)
        assert raw.is_closed()


def test_a_second_token_after_a_refused_one_is_refused(broker, issuer):
    with Raw(broker.bootstrap_servers) as raw:
        assert raw.handshake("OAUTHBEARER").error_code == 0
        assert bytes(raw.authenticate(first_message("x.y.z")).auth_bytes) == REFUSAL.encode()
        assert raw.authenticate(first_message(issuer.token())).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert raw.is_closed()


@pytest.mark.parametrize("size", [TOKEN_BYTES_MAX + 1, 300_000])
def test_an_oversized_token_is_refused(broker, issuer, size):
    with Raw(broker.bootstrap_servers) as raw:
        assert raw.handshake("OAUTHBEARER").error_code == 0
        refused = raw.authenticate(first_message("x" * size))
        assert refused.error_code or bytes(refused.auth_bytes) == REFUSAL.encode()
    assert log_in(broker, issuer.token())


def test_no_user_may_act_as_another(broker, issuer):
    with Raw(broker.bootstrap_servers) as raw:
        assert raw.handshake("OAUTHBEARER").error_code == 0
        message = f"n,a=admin,\x01auth=Bearer {issuer.token('alice')}\x01\x01".encode()
        assert raw.authenticate(message).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert raw.is_closed()


# Keys


def test_a_new_key_of_the_provider_is_fetched_when_a_token_names_it(tmp_path):
    issuer = TokenIssuer()
    server = KeyServer(issuer)
    try:
        with EmbeddedBroker(config=configs(server.url)) as broker:
            assert log_in(broker, issuer.token())
            before = server.requests
            issuer.add_key("second")
            clock = broker._runner._node.broker.authentication.token_keys("")._refresh
            clock._began_ms -= 60_000  # the fetch at the start was a minute ago
            assert log_in(broker, issuer.token(key_id="second"))
            assert server.requests == before + 1
            for number in range(5):
                with pytest.raises(AuthenticationFailed, match="invalid_token"):
                    log_in(broker, issuer.token(header={"kid": f"unknown-{number}"}))
            assert server.requests == before + 1, "tokens with unknown keys made the broker fetch again"
    finally:
        server.stop()


def test_logins_wait_for_the_first_fetch(issuer):
    server = KeyServer(issuer)
    server.released.clear()
    try:
        with EmbeddedBroker(config=configs(server.url)) as broker, Raw(broker.bootstrap_servers) as raw:
            assert raw.handshake("OAUTHBEARER").error_code == 0
            message = first_message(issuer.token())
            raw.send_message(message)
            server.released.set()
            assert raw.read_message().error_code == 0
    finally:
        server.stop()


def test_a_provider_that_redirects_is_not_followed(issuer):
    server = KeyServer(issuer)
    server.status = 302
    try:
        with EmbeddedBroker(config=configs(server.url)) as broker:
            with pytest.raises(AuthenticationFailed, match="invalid_token"):
                log_in(broker, issuer.token())
            server.status = 200
            deadline = time.monotonic() + WAIT_S
            while not len(broker._runner._node.broker.authentication.token_keys("")._keys):
                assert time.monotonic() < deadline, "the broker does not try again"
                time.sleep(0.02)
            assert log_in(broker, issuer.token())
    finally:
        server.stop()


def test_each_listener_has_its_identity_provider(tmp_path, issuer):
    own = TokenIssuer()
    files = {"keys.json": issuer, "own.json": own}
    for name, provider in files.items():
        (tmp_path / name).write_bytes(provider.document())
    prefix = "listener.name.partners.oauthbearer.sasl.oauthbearer"
    more = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PARTNERS://127.0.0.1:0",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,PARTNERS:SASL_PLAINTEXT",
        f"{prefix}.jwks.endpoint.url": (tmp_path / "own.json").as_uri(),
        f"{prefix}.expected.audience": "partners",
    }
    with EmbeddedBroker(config=configs((tmp_path / "keys.json").as_uri(), **more)) as broker:
        for address, right, wrong in zip(
            broker._runner._node.addresses,
            (issuer.token(), own.token(aud="partners")),
            (own.token(), issuer.token(aud="partners")),
            strict=True,
        ):
            with Admin(address, **own_settings(right)) as admin:
                assert admin.cluster().cluster_id
            with Admin(address, **own_settings(wrong)) as admin, pytest.raises(AuthenticationFailed):
                admin.cluster()


def test_keys_in_a_file(tmp_path, issuer):
    path = tmp_path / "keys.json"
    path.write_bytes(issuer.document())
    with EmbeddedBroker(config=configs(path.as_uri())) as broker:
        assert log_in(broker, issuer.token())


# Sessions


def test_a_session_ends_with_its_token(broker, issuer):
    """The token expired 25 seconds ago, of the 30 by which clocks may differ."""
    with Raw(broker.bootstrap_servers) as raw:
        assert raw.handshake("OAUTHBEARER").error_code == 0
        admitted = raw.authenticate(first_message(issuer.token(exp=time.time() - 25)))
        assert admitted.error_code == 0
        assert 0 < admitted.session_lifetime_ms <= 5_000
        deadline = time.monotonic() + WAIT_S
        session = broker._runner._node.broker.authentication
        expires_ms = session._clock.monotonic_ms() + admitted.session_lifetime_ms
        while session._clock.monotonic_ms() <= expires_ms:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        metrics = broker._runner._node.metrics
        before = (metrics.sessions_expired, metrics.protocol_errors)
        raw.send(ApiKey.METADATA, 1, b"\xff\xff\xff\xff")
        assert raw.is_closed()
        assert (metrics.sessions_expired, metrics.protocol_errors) == (before[0] + 1, before[1])


def test_the_user_may_not_change_when_a_client_authenticates_again(broker, issuer):
    with Raw(broker.bootstrap_servers) as raw:
        for user in ("alice", "alice"):
            assert raw.handshake("OAUTHBEARER").error_code == 0
            assert raw.authenticate(first_message(issuer.token(user))).error_code == 0
        assert raw.handshake("OAUTHBEARER").error_code == 0
        assert raw.authenticate(first_message(issuer.token("bob"))).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert raw.is_closed()


def test_clients_renew_their_tokens_while_they_produce(server, issuer):
    with EmbeddedBroker(config=configs(server.url, **{"sasl.oauthbearer.clock.skew.seconds": "0"})) as broker:
        metrics = broker._runner._node.metrics

        def token():
            return issuer.token(exp=time.time() + 6)

        with Producer(bootstrap_servers=broker.bootstrap_servers, **own_settings(token)) as producer:
            producer.send("renewed", b"x").result(timeout_ms=WAIT_MS)
            connected = metrics.logins
            deadline = time.monotonic() + WAIT_S
            while metrics.logins <= connected:
                assert time.monotonic() < deadline, "the client does not authenticate again"
                producer.send("renewed", b"x").result(timeout_ms=WAIT_MS)
                time.sleep(0.05)
        assert metrics.logins_failed == 0
        assert metrics.protocol_errors == 0

"""TLS and SASL: the exchanges alone, through links, and around a real broker."""

import asyncio
import selectors
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import scramp

from headrace import aio
from headrace.client import Admin, Consumer, Producer
from headrace.client.addresses import parse_bootstrap
from headrace.client.config import ClientConfig
from headrace.client.core.admin import brokers
from headrace.client.core.authentication import OAuthBearerExchange, PlainExchange, SaslExchange, ScramExchange
from headrace.client.core.cluster import Cluster
from headrace.client.core.engine import ClientEngine
from headrace.client.core.link import Security
from headrace.client.core.links import Links
from headrace.client.errors import AuthenticationFailed, ClientError, InvalidArgument
from headrace.ports.real.entropy import RealEntropy
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey
from headrace.wire.messages import metadata, sasl_authenticate, sasl_handshake

from .certificates import make_certificate
from .hostile import RECEIVE_BYTES, HostileServer, shut
from .scripted import ScriptedBroker, ScriptedNetwork, VirtualClock

pytestmark = pytest.mark.process

WAIT_MS = 60_000
USER, PASSWORD = "alice", "a secret, with = and ,"


class TlsProxy(HostileServer):
    """Ends TLS before a broker that speaks none."""

    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__(self._forward)
        self.broker = ("127.0.0.1", 0)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)

    def _forward(self, plain: socket.socket) -> None:
        broker = socket.create_connection(self.broker)
        try:
            client = self._context.wrap_socket(plain, server_side=True)
        except (OSError, ssl.SSLError):
            broker.close()
            return
        self._open += [broker, client]
        try:
            _pump(client, broker)
        except OSError:
            pass
        finally:
            shut(client)
            shut(broker)


def _pump(client: ssl.SSLSocket, broker: socket.socket) -> None:
    """Both ways in one thread, for a TLS connection is not for two at once."""
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, (client, broker))
        selector.register(broker, selectors.EVENT_READ, (broker, client))
        while True:
            pending = [(client, broker)] if client.pending() else [key.data for key, _ in selector.select()]
            for source, target in pending:
                chunk = source.recv(RECEIVE_BYTES)
                if not chunk:
                    return
                target.sendall(chunk)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secured(certificate: tuple[Path, Path]) -> Iterator[dict[str, Any]]:
    """The options of a client for a broker behind TLS."""
    with TlsProxy(*certificate) as proxy:
        advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
        with EmbeddedBroker(config=advertised) as broker:
            host, _, port = broker.bootstrap_servers.rpartition(":")
            proxy.broker = (host, int(port))
            yield {
                "bootstrap_servers": proxy.address,
                "security_protocol": "SSL",
                "ssl_ca_location": str(certificate[0]),
            }


def test_records_through_tls(secured: dict[str, Any]) -> None:
    values = [bytes([number % 256]) * 3_000 for number in range(1_000)]
    with Producer(**secured, batch_size=100_000) as producer:
        for value in values:
            producer.send("through-tls", value)
    with Consumer("through-tls", **secured, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_MS) as consumer:
        assert [next(consumer).value for _ in values] == values


def test_records_through_tls_on_a_loop(secured: dict[str, Any]) -> None:
    async def there_and_back() -> list[bytes]:
        async with aio.Producer(**secured) as producer:
            for number in range(300):
                await producer.send("tls-on-a-loop", b"%d" % number * 500)
        async with aio.Consumer(
            "tls-on-a-loop", **secured, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_MS
        ) as consumer:
            records = aiter(consumer)
            found = [(await anext(records)).value for _ in range(300)]
            await records.aclose()
            return found

    assert asyncio.run(there_and_back()) == [b"%d" % number * 500 for number in range(300)]


def test_a_certificate_of_an_unknown_authority(secured: dict[str, Any], tmp_path: Path) -> None:
    other, _ = make_certificate(tmp_path, "other")
    with Admin(**{**secured, "ssl_ca_location": str(other)}, timeout_ms=WAIT_MS) as admin:
        with pytest.raises(AuthenticationFailed, match="set ssl_ca_location"):
            admin.cluster()
    with pytest.raises(InvalidArgument, match="check the ssl_ settings"):
        Admin(**{**secured, "ssl_ca_location": str(tmp_path / "missing.pem")})


def test_a_broker_without_tls() -> None:
    with EmbeddedBroker() as broker:
        with Admin(broker.bootstrap_servers, security_protocol="SSL", timeout_ms=WAIT_MS) as admin:
            with pytest.raises(ClientError, match="TLS"):
                admin.cluster()


def sasl_broker(check: Callable[[bytes], tuple[int, bytes]], mechanism: str) -> ScriptedBroker:
    def handshake(request: sasl_handshake.SaslHandshakeRequest, _version: int) -> sasl_handshake.SaslHandshakeResponse:
        error = 0 if request.mechanism == mechanism else 33
        return sasl_handshake.SaslHandshakeResponse(error_code=error, mechanisms=(mechanism,))

    def authenticate(request: Any, _version: int) -> sasl_authenticate.SaslAuthenticateResponse:
        error, message = check(bytes(request.auth_bytes))
        return sasl_authenticate.SaslAuthenticateResponse(error_code=error, error_message="no", auth_bytes=message)

    def describe(_request: Any, _version: int) -> metadata.MetadataResponse:
        return metadata.MetadataResponse(cluster_id="the cluster")

    return ScriptedBroker(
        {ApiKey.SASL_HANDSHAKE: handshake, ApiKey.SASL_AUTHENTICATE: authenticate, ApiKey.METADATA: describe}
    )


def ask(broker: ScriptedBroker, exchange: Callable[[], SaslExchange], chunk_bytes: int = 2**30) -> Any:
    """Return what a client that authenticates this way learns of the cluster."""
    clock = VirtualClock()
    cluster = Cluster()
    links = Links(
        network=ScriptedNetwork(clock, {1: broker.feed}, chunk_bytes),
        clock=clock,
        bootstrap=parse_bootstrap("here:1"),
        client_id="c",
        cluster=cluster,
        security=Security(exchange=exchange),
    )
    engine = ClientEngine(links, clock)
    ended: list[Any] = []
    engine.start(brokers.describe_cluster(cluster), deadline_ms=clock.now_ms + 5_000, ended=ended.append)
    while not ended:
        links.turn(1_000)
    return ended[0]


@pytest.mark.parametrize("chunk_bytes", [1, 7, 2**30])
def test_plain(chunk_bytes: int) -> None:
    def check(message: bytes) -> tuple[int, bytes]:
        return (0 if message == b"\0alice\0" + PASSWORD.encode() else 58), b""

    broker = sasl_broker(check, "PLAIN")
    assert ask(broker, lambda: PlainExchange(USER, PASSWORD), chunk_bytes).cluster_id == "the cluster"
    refused = ask(sasl_broker(check, "PLAIN"), lambda: PlainExchange(USER, "wrong"), chunk_bytes)
    assert isinstance(refused, AuthenticationFailed)
    assert "refused the credentials: no" in str(refused)
    assert not [key for key, _, _ in broker.seen if key == ApiKey.METADATA][1:]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_scram(mechanism: str, password: str) -> None:
    scram = scramp.ScramMechanism(mechanism)
    salt, stored_key, server_key, iterations = scram.make_auth_info(PASSWORD, iteration_count=4096)
    server = scram.make_server(lambda _user: (salt, stored_key, server_key, iterations))
    steps = iter(range(9))

    def check(message: bytes) -> tuple[int, bytes]:
        try:
            if next(steps) == 0:
                server.set_client_first(message.decode())
                return 0, server.get_server_first().encode()
            server.set_client_final(message.decode())
            return 0, server.get_server_final().encode()
        except scramp.ScramException:
            return 58, b""

    exchange = ScramExchange(mechanism, USER, password, RealEntropy().random_bytes)
    outcome = ask(sasl_broker(check, mechanism), lambda: exchange)
    if password == PASSWORD:
        assert outcome.cluster_id == "the cluster"
    else:
        assert isinstance(outcome, AuthenticationFailed)


def test_a_broker_that_does_not_know_the_password() -> None:
    def check(message: bytes) -> tuple[int, bytes]:
        return 0, b"r=lie,s=AAAA,i=4096"

    exchange = ScramExchange("SCRAM-SHA-256", USER, PASSWORD, RealEntropy().random_bytes)
    outcome = ask(sasl_broker(check, "SCRAM-SHA-256"), lambda: exchange)
    assert isinstance(outcome, AuthenticationFailed)
    assert "did not prove" in str(outcome)


def test_oauth_tokens() -> None:
    def check(message: bytes) -> tuple[int, bytes]:
        return (0, b"") if message == b"n,,\x01auth=Bearer good\x01\x01" else (0, b'{"status":"invalid_token"}')

    def broken() -> str:
        raise OSError("no network")

    def outcome(token: Callable[[], str]) -> Any:
        return ask(sasl_broker(check, "OAUTHBEARER"), lambda: OAuthBearerExchange(token))

    assert outcome(lambda: "good").cluster_id == "the cluster"
    assert "invalid_token" in str(outcome(lambda: "bad"))
    assert "sasl_oauth_token raised" in str(outcome(broken))


def test_a_mechanism_that_the_broker_does_not_have() -> None:
    refused = ask(sasl_broker(lambda _: (0, b""), "PLAIN"), lambda: OAuthBearerExchange(lambda: "t"))
    assert "it accepts PLAIN: set sasl_mechanism" in str(refused)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"security_protocol": "SASL_PLAINTEXT"}, "PLAIN needs sasl_username"),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}, "needs sasl_oauth_token"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "sasl_mechanism must be one of"),
    ],
)
def test_settings_that_lack_something(options: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        Admin(**options)
    assert ClientConfig().security_protocol == "PLAINTEXT"

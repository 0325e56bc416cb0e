"""TLS and every SASL mechanism of the client against Apache Kafka, with both fronts."""

import asyncio
import base64
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.kafka import apache_kafka
from headrace import Admin, Consumer, Producer, aio
from headrace.bench.brokers import free_ports
from headrace.client import NewScramUser, ScramMechanism
from headrace.client.errors import AuthenticationFailed
from tests.client.certificates import make_certificate

USER, PASSWORD = "alice", "alice-secret"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
VISIBLE_S = 1.0
SESSION_MS = 2_000
"""After so long Kafka closes the connection of a client that has not said again who it is (KIP-368)."""


def settings(folder: Path, ports: dict[str, int]) -> dict[str, str]:
    certificate, key = make_certificate(folder)
    pkcs8 = subprocess.run(
        ["openssl", "pkcs8", "-topk8", "-nocrypt", "-in", str(key)], check=True, capture_output=True, text=True
    ).stdout
    chain = folder / "chain.pem"
    chain.write_text(pkcs8 + certificate.read_text())
    modules = "org.apache.kafka.common.security"
    texts = {
        "listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},"
        + ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(chain),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "connections.max.reauth.ms": str(SESSION_MS),
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{listener}"
        texts[f"{prefix}.plain.sasl.jaas.config"] = (
            f'{modules}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        )
        for mechanism in SCRAM:
            texts[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = f"{modules}.scram.ScramLoginModule required;"
        texts[f"{prefix}.oauthbearer.sasl.jaas.config"] = (
            f'{modules}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        )
    return texts


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("kafka")
    ports = dict(zip(("SSL", "SASL_PLAINTEXT", "SASL_SSL"), free_ports(3), strict=True))
    with apache_kafka(settings(folder, ports)) as kafka:
        kafka.create_topic("t")
        with Admin(kafka.bootstrap_servers) as admin:
            add_scram_users(admin)
        yield {"ports": ports, "certificate": str(folder / "server.pem")}


def add_scram_users(admin: Admin) -> None:
    users = [NewScramUser(name=USER, password=PASSWORD, mechanism=mechanism) for mechanism in ScramMechanism]
    for user in users:
        outcomes = admin.alter_scram_users([user])
        assert not any(outcome.error for outcome in outcomes.values()), outcomes
    time.sleep(VISIBLE_S)
    assert {each.mechanism for each in admin.scram_users([USER])[USER]} == set(ScramMechanism)
    assert admin.scram_users(["stranger"]) == {"stranger": ()}
    assert admin.alter_scram_users(deleted=[("stranger", ScramMechanism.SCRAM_SHA_256)])["stranger"].error


def unsecured_token() -> str:
    """A JWT without a signature, which Kafka takes where it is not told how to check one."""

    def part(content: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    now = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'sub': USER, 'iat': now, 'exp': now + 600})}."


def options(secured: dict[str, Any], protocol: str, mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    found: dict[str, Any] = {
        "bootstrap_servers": f"127.0.0.1:{secured['ports'][protocol]}",
        "security_protocol": protocol,
        "request_timeout_ms": 10_000,
    }
    if protocol != "SASL_PLAINTEXT":
        found["ssl_ca_location"] = secured["certificate"]
    if protocol != "SSL":
        found |= {"sasl_mechanism": mechanism}
        found |= (
            {"sasl_oauth_token": unsecured_token}
            if mechanism == "OAUTHBEARER"
            else {"sasl_username": USER, "sasl_password": password}
        )
    return found


CASES = [
    ("SSL", ""),
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_SSL", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ("SASL_SSL", "SCRAM-SHA-512"),
    ("SASL_SSL", "OAUTHBEARER"),
]


@pytest.mark.parametrize(("protocol", "mechanism"), CASES)
def test_there_and_back(secured: dict[str, Any], protocol: str, mechanism: str) -> None:
    chosen = options(secured, protocol, mechanism)
    with Producer(**chosen) as producer:
        where = producer.send("t", b"%s %s" % (protocol.encode(), mechanism.encode())).result(timeout_ms=20_000)
    with Consumer(**chosen) as consumer:
        consumer.assign([("t", 0)])
        consumer.seek(("t", 0), where.offset)
        (record,) = consumer.poll(timeout_ms=20_000)
    assert record.value == f"{protocol} {mechanism}".encode()


@pytest.mark.parametrize(("protocol", "mechanism"), CASES)
def test_on_a_loop(secured: dict[str, Any], protocol: str, mechanism: str) -> None:
    async def send() -> int:
        async with aio.Producer(**options(secured, protocol, mechanism)) as producer:
            return (await producer.send_and_wait("t", b"v")).offset

    assert asyncio.run(send()) >= 0


@pytest.mark.parametrize(("protocol", "mechanism"), [("SASL_PLAINTEXT", "SCRAM-SHA-256"), ("SASL_SSL", "OAUTHBEARER")])
def test_a_client_that_stays_says_again_who_it_is(secured: dict[str, Any], protocol: str, mechanism: str) -> None:
    with Producer(**options(secured, protocol, mechanism)) as producer:
        ends = time.monotonic() + 2.5 * SESSION_MS / 1000
        while time.monotonic() < ends:
            producer.send("t", b"v").result(timeout_ms=20_000)
            time.sleep(0.05)
        metrics = producer.metrics()
    assert metrics["connection-failure-total"] == 0
    assert metrics["connection-count"] <= 2


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password(secured: dict[str, Any], mechanism: str) -> None:
    with Admin(**options(secured, "SASL_SSL", mechanism, "wrong"), timeout_ms=5_000) as admin:
        with pytest.raises(AuthenticationFailed, match="refused the credentials"):
            admin.cluster()

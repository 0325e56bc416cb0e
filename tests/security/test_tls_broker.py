"""Stock clients and Headrace's own over TLS, and handshakes that do no harm to other clients."""

import os
import socket
import ssl
import time

import pytest

from headrace.broker.net import handshakes
from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.testing import EmbeddedBroker

from .certificates import Authority
from .stock import CLIENTS, WAIT_MS, own, own_settings

pytestmark = pytest.mark.process

LARGE = os.urandom(900_000)
RECORDS = [b"first", LARGE, *(b"%d" % number * 100 for number in range(200))]
HALF_OPEN = 30


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"), "alice", "bob")


@pytest.fixture(scope="module")
def broker(authority):
    configs = authority.configs("required", ssl_principal_mapping_rules=r"RULE:^CN=(.*?)$/$1/")
    with EmbeddedBroker(config=configs) as broker:
        yield broker


def settings(authority, name=None):
    found = {"security.protocol": "SSL", "ssl.ca.location": authority.ca}
    if name is not None:
        found |= {"ssl.certificate.location": authority.certificate(name), "ssl.key.location": authority.key(name)}
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_with_certificates_write_and_read(broker, authority, client):
    topic = f"mutual-{client}"
    found = CLIENTS[client](broker.bootstrap_servers, topic, RECORDS, settings(authority, "alice"))
    assert found == RECORDS


def test_a_client_without_a_certificate_gets_nothing(broker, authority):
    with Admin(broker.bootstrap_servers, **own_settings(settings(authority)), timeout_ms=10_000) as admin:
        with pytest.raises(ClientError):
            admin.cluster()


def test_half_open_handshakes_and_plain_requests_do_no_harm(broker, authority):
    host, port = broker.bootstrap_servers.split(":")
    opened = []
    try:
        for number in range(HALF_OPEN):
            connection = socket.create_connection((host, int(port)))
            opened.append(connection)
            connection.sendall(
                (b"", b"\x16\x03\x01", b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\x00\x00")[number % 3]
            )
        records = [b"beside"]
        assert own(broker.bootstrap_servers, "beside", records, settings(authority, "bob")) == records
        for connection in opened[2::3]:
            connection.settimeout(WAIT_MS / 1000)
            while connection.recv(100):  # an alert may come before the end
                pass
    finally:
        for connection in opened:
            connection.close()


def test_handshakes_that_stall_are_closed_and_named(authority, monkeypatch):
    monkeypatch.setattr(handshakes, "TLS_HANDSHAKE_MS_MAX", 200)
    with EmbeddedBroker(config=authority.configs()) as broker:
        host, port = broker.bootstrap_servers.split(":")
        for sent in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"):
            with socket.create_connection((host, int(port))) as connection:
                connection.settimeout(WAIT_MS / 1000)
                connection.sendall(sent)
                while connection.recv(100):
                    pass
        assert broker._runner._node.metrics.tls_handshakes_failed == 3


def test_more_handshakes_than_allowed_end_the_oldest(authority, monkeypatch):
    monkeypatch.setattr(handshakes, "TLS_HANDSHAKES_MAX", 5)
    with EmbeddedBroker(config=authority.configs()) as broker:
        host, port = broker.bootstrap_servers.split(":")
        opened = [socket.create_connection((host, int(port))) for _ in range(6)]
        try:
            opened[0].settimeout(WAIT_MS / 1000)
            assert opened[0].recv(100) == b""
            records = [b"beside"]
            assert own(broker.bootstrap_servers, "crowd", records, settings(authority)) == records
        finally:
            for connection in opened:
                connection.close()


def served_certificate(bootstrap):
    host, port = bootstrap.split(":")
    return ssl.get_server_certificate((host, int(port)), timeout=WAIT_MS / 1000)


def test_certificates_are_read_again_while_clients_are_connected(tmp_path, authority):
    own_authority = Authority(tmp_path / "ca", "alice")
    with EmbeddedBroker(config=own_authority.configs()) as broker:
        former = served_certificate(broker.bootstrap_servers)
        with Admin(broker.bootstrap_servers, **own_settings(settings(own_authority))) as admin:
            before = admin.cluster()
            own_authority.renew()
            deadline = time.monotonic() + WAIT_MS / 1000
            while served_certificate(broker.bootstrap_servers) == former:
                assert time.monotonic() < deadline, "the broker does not read its certificate again"
                time.sleep(0.2)
            assert admin.cluster() == before, "an open connection lasts"
        records = [b"after"]
        assert own(broker.bootstrap_servers, "after", records, settings(own_authority)) == records

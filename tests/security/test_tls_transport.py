"""The broker's side of TLS on a transport in memory: handshakes, bytes in any pieces, and clients that misbehave."""

import datetime
import ssl

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.limits import TLS_SENT_BYTES_MAX
from headrace.operations import development_ca
from headrace.ports.disk import FileRange

from .certificates import Authority
from .memory_tls import Client, Wire, broker_tls, client_context, connected, refusal


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"), "alice")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("piece", [1, 37, 1 << 30])
def test_a_handshake_ends_however_its_bytes_arrive(authority, version, piece):
    context = client_context(authority, "alice", version=version)
    connection, _wire, client, _again = connected(broker_tls(authority, "required"), context, piece=piece)
    assert client.tls.version() == {771: "TLSv1.2", 772: "TLSv1.3"}[version]
    subject = x509.load_der_x509_certificate(connection.certificate).subject
    assert subject.rfc4514_string() == "CN=alice"


def test_a_client_without_a_certificate_has_none(authority):
    connection, *_ = connected(broker_tls(authority, "requested"), client_context(authority))
    assert connection.certificate is None


def test_the_handshake_waits_for_a_network_that_accepts_nothing(authority):
    wire, client = Wire(), Client(client_context(authority))
    wire.room = 10
    connection = broker_tls(authority).wrap(wire, lambda: None)
    assert not client.shake()
    client.give(wire)
    assert not connection.handshake()
    assert connection.wants_send
    assert len(wire.to_client) == 10


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_received_bytes_are_whole_and_in_order_in_buffers_of_any_size(authority, data):
    connection, wire, client, again = connected(broker_tls(authority), client_context(authority))
    sent = bytes(range(256)) * data.draw(st.integers(1, 300))
    client.tls.write(sent)
    received = bytearray()
    while len(received) < len(sent):
        client.give(wire, data.draw(st.sampled_from((40_000, 5_000, 301))))
        while True:
            buffer = memoryview(bytearray(data.draw(st.sampled_from((100_000, 16 << 10, 5_000, 100, 1)))))
            again.clear()
            try:
                count = connection.recv_into(buffer)
            except BlockingIOError:
                break
            received += buffer[:count]
            if not again and not wire.to_broker:
                break  # no event of the network would follow
    assert received == sent
    assert not connection.has_buffered


def test_bytes_that_no_event_announces_are_announced(authority):
    connection, wire, client, again = connected(broker_tls(authority), client_context(authority))
    client.tls.write(b"0123456789")
    client.give(wire)
    buffer = memoryview(bytearray(4))
    assert (connection.recv_into(buffer), bytes(buffer), again) == (4, b"0123", [True])
    assert connection.has_buffered
    assert (connection.recv_into(buffer), bytes(buffer)) == (4, b"4567")
    assert (connection.recv_into(buffer), bytes(buffer[:2])) == (2, b"89")
    assert not connection.has_buffered
    with pytest.raises(BlockingIOError):
        connection.recv_into(buffer)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_sent_bytes_are_whole_and_in_order_whatever_the_network_accepts(authority, data):
    connection, wire, client, _again = connected(broker_tls(authority), client_context(authority))
    content = bytes(range(256)) * data.draw(st.integers(1, 2_000))
    at, received = 0, bytearray()
    while at < len(content):
        wire.room = data.draw(st.sampled_from((200_000, 5_000, 30, 1, 0)))
        try:
            count = connection.send(content[at : at + data.draw(st.sampled_from((400_000, 70_000)))])
        except BlockingIOError:
            count = 0
        assert 0 <= count <= TLS_SENT_BYTES_MAX
        at += count
        client.take(wire)
        received += client.read()
    client.take(wire)
    received += client.read()
    assert received == content
    assert not connection.wants_send


def test_a_range_of_a_file_is_sent(authority, tmp_path):
    connection, wire, client, _again = connected(broker_tls(authority), client_context(authority))
    content = bytes(range(256)) * 4_000
    path = tmp_path / "segment"
    path.write_bytes(b"before" + content + b"after")
    received = bytearray()
    with path.open("rb") as file:
        part = FileRange(file.fileno(), 6, len(content))
        while part.length:
            wire.room = 50_000
            try:
                sent = connection.send_range(part)
            except BlockingIOError:
                sent = 0
            part = FileRange(part.file, part.position + sent, part.length - sent)
            client.take(wire)
            received += client.read()
    assert received == content


def test_the_end_of_the_stream_is_zero(authority):
    connection, wire, client, _again = connected(broker_tls(authority), client_context(authority))
    client.tls.write(b"last")
    client.give(wire)
    wire.ended = True
    buffer = memoryview(bytearray(100))
    assert connection.recv_into(buffer) == 4
    assert connection.recv_into(buffer) == 0


def test_a_goodbye_is_the_end_of_the_stream(authority):
    connection, wire, client, again = connected(broker_tls(authority), client_context(authority))
    client.tls.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    client.give(wire)
    buffer = memoryview(bytearray(100))
    assert (connection.recv_into(buffer), again) == (4, [True])
    assert connection.recv_into(buffer) == 0


def test_close_says_goodbye(authority):
    connection, wire, client, _again = connected(broker_tls(authority), client_context(authority))
    connection.close()
    assert wire.closed
    client.take(wire)
    assert client.tls.read(10) == b""


def test_clients_without_tls_learn_that_tls_is_needed(authority):
    tls = broker_tls(authority)
    request = b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\x00\x00"
    assert "does not speak TLS" in refusal(tls, content=request)
    assert "does not speak TLS" in refusal(tls, content=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert "closed the connection" in refusal(tls, content=b"\x16\x03\x01")


def test_a_certificate_may_be_required(authority):
    assert "presented no certificate" in refusal(broker_tls(authority, "required"), client_context(authority))


def test_certificates_of_other_authorities_are_refused(authority, tmp_path):
    other = Authority(tmp_path, "mallory")
    context = client_context(authority)
    context.load_cert_chain(other.certificate("mallory"), other.key("mallory"))
    for client_auth in ("required", "requested"):
        assert "not accepted" in refusal(broker_tls(authority, client_auth), context)


def test_expired_certificates_are_refused(authority, monkeypatch):
    monkeypatch.setattr(development_ca, "CLOCKS_DIFFER_BY", datetime.timedelta(days=30))
    development_ca.init_authority(authority.folder, hosts=(), clients=["late"], days=-1)
    reason = refusal(broker_tls(authority, "required"), client_context(authority, "late"))
    assert "expired" in reason


def test_a_client_that_does_not_trust_the_broker_is_named_as_such(authority):
    assert "does not trust" in refusal(broker_tls(authority), client_context(authority, trusts=False))


def test_old_versions_are_refused(authority):
    tls = broker_tls(authority, ssl_enabled_protocols="TLSv1.3")
    assert "ssl.enabled.protocols" in refusal(tls, client_context(authority, version=ssl.TLSVersion.TLSv1_2))


def test_suites_decide_about_versions(authority):
    tls = broker_tls(authority, ssl_cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    *_, client, _again = connected(tls, client_context(authority))
    assert client.tls.cipher()[:2] == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2")
    tls = broker_tls(authority, ssl_cipher_suites="TLS_AES_256_GCM_SHA384")
    assert "ssl.enabled.protocols" in refusal(tls, client_context(authority, version=ssl.TLSVersion.TLSv1_2))


def test_an_endless_handshake_is_refused(authority):
    hello = b"\x16\x03\x01\x40\x00" + b"\x01\x00\xff\xff" + bytes((16 << 10) - 4)
    more = b"\x16\x03\x03\x40\x00" + bytes(16 << 10)
    assert refusal(broker_tls(authority), content=hello + 20 * more)

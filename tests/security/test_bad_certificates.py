"""Certificates and handshakes that a broker must not accept: it says why, whatever arrives."""

import datetime
import random
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from headrace.model.configs import BrokerConfig
from headrace.ports.network import TlsRefused
from headrace.ports.real.tls import server_tls

from .certificates import Authority
from .memory_tls import Client, Wire, broker_tls, client_context, connected, refusal

DAY = datetime.timedelta(days=1)
CUTS, FLIPS = 40, 200


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"), "alice", "mallory")


def authority_key(authority):
    return serialization.load_pem_private_key((authority.folder / "ca.key").read_bytes(), None)


def write_revocations(authority, *names):
    """Write the list of revoked certificates of the authority, and return its file."""
    now = datetime.datetime.now(datetime.UTC)
    issuer = x509.load_pem_x509_certificate((authority.folder / "ca.pem").read_bytes()).subject
    revoked = x509.CertificateRevocationListBuilder().issuer_name(issuer).last_update(now - DAY).next_update(now + DAY)
    for name in names:
        serial = certificate_of(authority, name).serial_number
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now - DAY).build()
        revoked = revoked.add_revoked_certificate(entry)
    path = authority.folder / "revoked.pem"
    path.write_bytes(revoked.sign(authority_key(authority), SHA256()).public_bytes(serialization.Encoding.PEM))
    return str(path)


def certificate_of(authority, name):
    content = (authority.folder / f"{name}.pem").read_bytes()
    return x509.load_pem_x509_certificate(content[content.index(b"-----BEGIN CERTIFICATE") :])


def write_self_signed(folder, name):
    """Write a certificate that no authority has signed, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - DAY).not_valid_after(now + DAY)
    certificate = builder.sign(key, SHA256()).public_bytes(serialization.Encoding.PEM)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "self.pem").write_bytes(text + certificate)
    return str(folder / "self.pem")


@pytest.mark.parametrize("client_auth", ["required", "requested"])
def test_a_self_signed_certificate_is_refused_although_it_has_a_known_name(authority, tmp_path, client_auth):
    context = client_context(authority)
    context.load_cert_chain(write_self_signed(tmp_path, "alice"))
    assert "not accepted" in refusal(broker_tls(authority, client_auth), context)


def test_a_revoked_certificate_is_refused_and_others_are_not(authority):
    tls = broker_tls(authority, "required", headrace_ssl_crl_location=write_revocations(authority, "mallory"))
    assert "revoked" in refusal(tls, client_context(authority, "mallory"))
    connection, *_ = connected(tls, client_context(authority, "alice"))
    assert connection.certificate is not None


def test_a_certificate_that_is_revoked_later_is_refused_from_the_next_connection_on(authority):
    path = write_revocations(authority)
    configs = authority.configs("required", headrace_ssl_crl_location=path)
    before = server_tls(BrokerConfig.from_texts(configs).tls, None)
    connected(before, client_context(authority, "mallory"))
    write_revocations(authority, "mallory")
    after = server_tls(BrokerConfig.from_texts(configs).tls, before)
    assert "revoked" in refusal(after, client_context(authority, "mallory"))


def test_a_revocation_list_of_another_authority_admits_no_client(authority, tmp_path):
    other = Authority(tmp_path / "other", "eve")
    tls = broker_tls(authority, "required", headrace_ssl_crl_location=write_revocations(other))
    assert "CRL" in refusal(tls, client_context(authority, "alice"))


@pytest.mark.parametrize("host", ["other.example", "127.0.0.2"])
def test_a_client_that_expects_another_host_leaves(authority, host):
    assert "does not trust" in refusal(broker_tls(authority), client_context(authority), host=host)


# Handshakes


def client_hello(authority):
    client = Client(client_context(authority))
    client.shake()
    return client.outgoing.read()


def hello_of_version(version):
    """The first message of a client whose newest version is this one."""
    body = version + bytes(32) + b"\x00" + b"\x00\x04\x00\x2f\xc0\x09" + b"\x01\x00"
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        (b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + bytes(37), "does not speak TLS"),  # SSL 2.0
        (hello_of_version(b"\x03\x00"), "ssl.enabled.protocols"),  # SSL 3.0
        (hello_of_version(b"\x03\x01"), "ssl.enabled.protocols"),  # TLS 1.0
        (hello_of_version(b"\x03\x02"), "ssl.enabled.protocols"),  # TLS 1.1
    ],
)
def test_a_downgrade_is_refused(authority, hello, reason):
    assert reason in refusal(broker_tls(authority), content=hello, ends=False)


def test_a_forced_fallback_is_refused(authority):
    """The client offers TLS 1.2 after a failure that was caused between it and the broker (RFC 7507)."""
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x04\xc0\x2b\x56\x00" + b"\x01\x00"
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    hello = b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message
    assert "INAPPROPRIATE_FALLBACK" in refusal(broker_tls(authority), content=hello, ends=False)


def test_a_handshake_may_end_after_any_byte(authority):
    hello, tls = client_hello(authority), broker_tls(authority)
    for cut in sorted({1, 4, 5, 6, len(hello) - 1, *random.Random(1).sample(range(1, len(hello)), CUTS)}):
        assert "closed the connection" in refusal(tls, content=hello[:cut]), cut


def finish(connection):
    while not connection.handshake():
        pass


def test_damaged_handshakes_are_refused_or_wait(authority):
    hello, tls, dice = client_hello(authority), broker_tls(authority), random.Random(2)
    for _ in range(FLIPS):
        damaged = bytearray(hello)
        for _ in range(dice.randint(1, 8)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        wire = Wire()
        connection = tls.wrap(wire, lambda: None)
        wire.to_broker += damaged
        wire.ended = True
        with pytest.raises(TlsRefused):
            finish(connection)


def test_data_before_the_end_of_the_handshake_is_refused(authority):
    request = b"\x17\x03\x03\x00\x12" + b"\x00\x00\x00\x0e\x00\x12\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"
    assert "TLS failed" in refusal(broker_tls(authority), content=request, ends=False)
    assert "TLS failed" in refusal(broker_tls(authority), content=client_hello(authority) + request, ends=False)


def test_small_records_without_an_end_are_refused(authority):
    """Each record has one byte of a message that promises 16 MB."""
    piece = b"\x16\x03\x01\x00\x01"
    start = b"".join(piece + bytes((byte,)) for byte in b"\x01\xff\xff\xff")
    endless = start + (piece + b"\x00") * 60_000
    assert refusal(broker_tls(authority), content=endless, ends=False)


def test_a_handshake_of_another_session_does_not_count(authority):
    """The bytes of an admitted client, sent again, are refused."""
    tls, wire, client = broker_tls(authority, "required"), Wire(), Client(client_context(authority, "alice"))
    connection, sent = tls.wrap(wire, lambda: None), b""
    for _ in range(10):
        try:
            client.shake()
        except ssl.SSLError as error:
            raise AssertionError("the client is admitted the first time") from error
        client.give(wire)
        sent += bytes(wire.to_broker)
        if connection.handshake():
            break
        client.take(wire)
    assert "TLS failed" in refusal(tls, content=sent, ends=False)

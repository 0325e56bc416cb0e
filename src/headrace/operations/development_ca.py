"""A certificate authority for development: its key, and certificates of brokers and clients, as PEM files."""

import datetime
import os
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from headrace.operations.errors import OperationError

AUTHORITY_DAYS = 3_650
BROKER_HOSTS = ("localhost", "127.0.0.1", "::1")
NAME_LENGTH_MAX = 64
"""Characters of a common name (RFC 5280)."""

CLOCKS_DIFFER_BY = datetime.timedelta(hours=1)
"""Certificates are valid from this time before now, for machines whose clocks are behind."""


class AuthorityError(OperationError):
    """The authority or a certificate cannot be made."""


class Issued(NamedTuple):
    """The files of one certificate."""

    name: str
    files: tuple[Path, ...]


def init_authority(
    folder: Path, *, hosts: Sequence[str], clients: Iterable[str], days: int, is_renewal: bool = False
) -> list[Issued]:
    """Make an authority, and the certificates that the folder does not have yet; an existing authority issues them.

    With `is_renewal` the certificates of the broker and of these clients are replaced by new ones.
    """
    clients = tuple(clients)
    for name in clients:
        _check_name(name)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = _authority(folder)
        issued = []
        if is_renewal or not (folder / "broker.pem").exists():
            issued.append(_issue_broker(authority, folder, hosts, days))
        issued += [
            _issue_client(authority, folder, name, days)
            for name in clients
            if is_renewal or not (folder / f"{name}.pem").exists()
        ]
    except OSError as error:
        raise AuthorityError(f"{error.filename or folder} cannot be written or read: {error.strerror}") from None
    return issued


class _Authority(NamedTuple):
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def _authority(folder: Path) -> _Authority:
    """Read the authority of the folder, or make one."""
    key_file, certificate_file = folder / "ca.key", folder / "ca.pem"
    if key_file.exists() or certificate_file.exists():
        try:
            key = serialization.load_pem_private_key(key_file.read_bytes(), None)
            certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        except (ValueError, TypeError, FileNotFoundError):
            raise AuthorityError(
                f"{key_file} and {certificate_file} are not an authority: choose another folder"
            ) from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise AuthorityError(f"{key_file} was not made by this command: choose another folder")
        return _Authority(key, certificate)
    key = _new_key()
    name = _name("Headrace development CA")
    certificate = (
        _builder(name, key, AUTHORITY_DAYS)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )
    _write(key_file, _key_pem(key))
    _write(certificate_file, _certificate_pem(certificate), private=False)
    return _Authority(key, certificate)


def _issue_broker(authority: _Authority, folder: Path, hosts: Sequence[str], days: int) -> Issued:
    names = tuple(dict.fromkeys((*hosts, *BROKER_HOSTS)))
    key = _new_key()
    builder = _builder(_name(names[0][:NAME_LENGTH_MAX]), key, days).add_extension(
        x509.SubjectAlternativeName([_alternative(host) for host in names]), critical=False
    )
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    certificate = _signed(builder, key, usage, authority)
    path = folder / "broker.pem"
    _write(path, _key_pem(key) + _certificate_pem(certificate))
    return Issued(", ".join(names), (path,))


def _issue_client(authority: _Authority, folder: Path, name: str, days: int) -> Issued:
    key = _new_key()
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    certificate = _signed(_builder(_name(name), key, days), key, usage, authority)
    key_file, certificate_file = folder / f"{name}.key", folder / f"{name}.pem"
    _write(key_file, _key_pem(key))
    _write(certificate_file, _key_pem(key) + _certificate_pem(certificate))
    return Issued(name, (certificate_file, key_file))


def _check_name(name: str) -> None:
    if not name or len(name) > NAME_LENGTH_MAX or name in ("ca", "broker") or "/" in name or not name.isprintable():
        raise AuthorityError(
            f'"{name}" cannot be a client\'s name: use 1 to {NAME_LENGTH_MAX} characters without slashes, and neither '
            '"ca" nor "broker"'
        )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    usage: x509.ExtendedKeyUsage,
    authority: _Authority,
) -> x509.Certificate:
    return (
        builder.issuer_name(authority.certificate.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(usage, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .sign(authority.key, SHA256())
    )


def _builder(name: x509.Name, key: ec.EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER_BY)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise AuthorityError(
            f'"{host}" is not a host name: write names of other alphabets in their xn-- form'
        ) from None


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write(path: Path, content: bytes, *, private: bool = True) -> None:
    """Replace the file at once, so that a broker that reads it meanwhile gets a whole one."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o644)
    with open(descriptor, "wb") as file:
        file.write(content)
    os.replace(temporary, path)

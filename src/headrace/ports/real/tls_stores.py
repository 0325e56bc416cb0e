"""Reads keys and certificates of listeners into an SSLContext: PEM files, PEM texts and PKCS#12 files."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from headrace.model.configs.definition import ConfigError
from headrace.model.configs.tls import Store, TlsConfig

STORE_BYTES_MAX = 4 << 20
"""Bytes of a file with keys or certificates."""

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

_TLS13_SUITES = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"})

_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": "DHE-RSA-AES256-GCM-SHA384",
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": "DHE-RSA-AES128-GCM-SHA256",
    "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "DHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
}
"""Suites of TLS 1.2 with forward secrecy, by their IANA names, with OpenSSL's."""


class Stores(NamedTuple):
    """Contents of the files; None where a config names no file."""

    keys: bytes | None
    trusted: bytes | None
    revocations: bytes | None


def read_stores(config: TlsConfig) -> Stores:
    return Stores(
        _read("ssl.keystore.location", config.key_store.location),
        _read("ssl.truststore.location", config.trust_store.location),
        _read("headrace.ssl.crl.location", config.revocations),
    )


def _read(name: str, path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            content = file.read(STORE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f'config "{name}" names {path}, which cannot be read: {error.strerror}') from None
    if len(content) > STORE_BYTES_MAX:
        raise ConfigError(f'config "{name}" names {path}, which has more than {STORE_BYTES_MAX} bytes')
    return content


def load_stores(context: ssl.SSLContext, config: TlsConfig, stores: Stores) -> None:
    """Set up the context; raise ConfigError with the config to correct."""
    _set_versions(context, config)
    _load_keys(context, config, stores)
    trusted = _certificates(config.trust_store, stores.trusted)
    if trusted is not None:
        _load_trusted(context, trusted, "ssl.truststore")
    if stores.revocations is not None:
        _load_revocations(context, stores.revocations)


def _set_versions(context: ssl.SSLContext, config: TlsConfig) -> None:
    """Set versions and cipher suites. Python sets the suites of TLS 1.2 alone; those of TLS 1.3 are all strong."""
    versions = list(config.protocols)
    if config.ciphers:
        known = [_SUITES[name] for name in config.ciphers if name in _SUITES]
        unknown = [name for name in config.ciphers if name not in _SUITES and name not in _TLS13_SUITES]
        if unknown:
            raise ConfigError(
                f'config "ssl.cipher.suites" has "{unknown[0]}", which is unknown or weak: use some of '
                f"{', '.join((*sorted(_TLS13_SUITES), *_SUITES))}"
            )
        if not known:
            versions = [version for version in versions if version != "TLSv1.2"]
        else:
            context.set_ciphers(":".join(known))
        if not _TLS13_SUITES.intersection(config.ciphers):
            versions = [version for version in versions if version != "TLSv1.3"]
        if not versions:
            raise ConfigError('config "ssl.cipher.suites" has no suite of the versions in ssl.enabled.protocols')
    context.minimum_version = min(_VERSIONS[version] for version in versions)
    context.maximum_version = max(_VERSIONS[version] for version in versions)


def _load_keys(context: ssl.SSLContext, config: TlsConfig, stores: Stores) -> None:
    store, password = config.key_store, config.key_password
    if stores.keys is None:
        assert store.private_key is not None
        assert store.certificates is not None
        pem = f"{_pem_lines(store.private_key)}\n{_pem_lines(store.certificates)}\n".encode()
    elif store.type == "PKCS12":
        pem, password = _pem_of_pkcs12(stores.keys, store.password, "ssl.keystore"), None
    else:
        pem = stores.keys
    try:
        with _file_of(pem) as path:
            context.load_cert_chain(path, password=lambda: password or "")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error) or "it is not PEM"
        hint = "check ssl.key.password" if config.key_password is not None else "if it has a password: ssl.key.password"
        raise ConfigError(
            f"the key store cannot be used ({reason}): it needs a private key and its certificate in PEM; {hint}"
        ) from None


@contextmanager
def _file_of(pem: bytes) -> Iterator[str]:
    """Offer the text as a file, which Python's ssl module asks for; in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("headrace-key")
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="headrace-key-")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(pem)
        yield path
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            os.unlink(path)


def _certificates(store: Store, content: bytes | None) -> str | None:
    """Return the PEM text of a trust store; None if none is configured."""
    if content is None:
        return None if store.certificates is None else _pem_lines(store.certificates)
    if store.type == "PKCS12":
        content = _pem_of_pkcs12(content, store.password, "ssl.truststore")
    return content.decode("ascii", errors="ignore")  # between certificates there may be any text


def _load_trusted(context: ssl.SSLContext, pem: str, name: str) -> None:
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ConfigError(f"{name} cannot be used ({reason}): it needs certificates in PEM") from None


def _load_revocations(context: ssl.SSLContext, pem: bytes) -> None:
    try:
        with _file_of(pem) as path:
            context.load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ConfigError(
            f'config "headrace.ssl.crl.location" cannot be used ({reason}): it needs revocation lists in PEM'
        ) from None
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _pem_lines(text: str) -> str:
    """Return PEM text with its line ends: a config value on one line may have blanks in their place, as in Kafka."""
    if "\n" in text.strip():
        return text
    lines: list[str] = []
    for part in text.split("-----"):
        stripped = part.strip()
        if stripped.startswith(("BEGIN ", "END ")):
            lines.append(f"-----{stripped}-----")
        else:
            lines.extend(stripped.split())
    return "\n".join(lines)


def _pem_of_pkcs12(content: bytes, password: str | None, name: str) -> bytes:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise ConfigError(
            f'{name}.type is PKCS12, which needs a package: pip install "headrace[auth]", or use PEM files'
        ) from None
    try:
        store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError:
        raise ConfigError(f"{name}.location is not a PKCS12 file, or {name}.password is wrong") from None
    parts: list[bytes] = []
    if store.key is not None:
        parts.append(
            store.key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    parts += [
        entry.certificate.public_bytes(serialization.Encoding.PEM)
        for entry in (store.cert, *store.additional_certs)
        if entry is not None
    ]
    return b"".join(parts)

"""Typed view of the configs of TLS."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from headrace.model.configs.definition import ConfigError
from headrace.model.principal_rules import PrincipalRules


class ClientAuth(StrEnum):
    """The policy of certificates of clients."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


class SecurityProtocol(StrEnum):
    """The security of a listener."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def uses_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

    def authenticates(self, client_auth: ClientAuth) -> bool:
        """Return whether no client gets in without a name."""
        return self.uses_sasl or (self is SecurityProtocol.SSL and client_auth is ClientAuth.REQUIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Certificates, and the private key of a key store: a file, or PEM texts (KIP-651)."""

    type: str
    location: str | None
    password: str | None = field(repr=False)
    certificates: str | None = field(repr=False)
    private_key: str | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """Configs of the listeners with TLS."""

    key_store: Store
    key_password: str | None = field(repr=False)
    trust_store: Store
    revocations: str | None
    client_auth: ClientAuth
    protocols: tuple[str, ...]
    ciphers: tuple[str, ...]
    principal_rules: str

    @property
    def secret_files(self) -> tuple[str, ...]:
        """The files with a private key."""
        return () if self.key_store.location is None else (self.key_store.location,)

    def rules(self) -> PrincipalRules:
        return PrincipalRules(self.principal_rules)


class ConfigValues(Protocol):
    """Parsed values by the name of the config."""

    def whole(self, name: str) -> int: ...
    def text(self, name: str) -> str: ...
    def optional_text(self, name: str) -> str | None: ...
    def items(self, name: str) -> tuple[str, ...]: ...


def tls_config(values: ConfigValues) -> TlsConfig:
    return TlsConfig(
        key_store=Store(
            type=values.text("ssl.keystore.type").upper(),
            location=values.optional_text("ssl.keystore.location"),
            password=values.optional_text("ssl.keystore.password"),
            certificates=values.optional_text("ssl.keystore.certificate.chain"),
            private_key=values.optional_text("ssl.keystore.key"),
        ),
        key_password=values.optional_text("ssl.key.password"),
        trust_store=Store(
            type=values.text("ssl.truststore.type").upper(),
            location=values.optional_text("ssl.truststore.location"),
            password=values.optional_text("ssl.truststore.password"),
            certificates=values.optional_text("ssl.truststore.certificates"),
        ),
        revocations=values.optional_text("headrace.ssl.crl.location"),
        client_auth=ClientAuth(values.text("ssl.client.auth")),
        protocols=values.items("ssl.enabled.protocols"),
        ciphers=values.items("ssl.cipher.suites"),
        principal_rules=values.text("ssl.principal.mapping.rules"),
    )


def check_tls(config: TlsConfig, listener: str) -> None:
    """Raise ConfigError if a listener with TLS cannot work with these configs."""
    keys, trusted = config.key_store, config.trust_store
    if keys.location is None and (keys.private_key is None or keys.certificates is None):
        raise ConfigError(
            f'listener "{listener}" uses TLS but has no certificate: set ssl.keystore.location, or '
            "ssl.keystore.key and ssl.keystore.certificate.chain (headrace tls init makes files for a test)"
        )
    if keys.location is not None and (keys.private_key is not None or keys.certificates is not None):
        raise ConfigError(
            'config "ssl.keystore.location" and the PEM texts ssl.keystore.key and ssl.keystore.certificate.chain are '
            "both set: give the key only once"
        )
    if keys.private_key is not None and keys.type != "PEM":
        raise ConfigError('config "ssl.keystore.key" is PEM text: set ssl.keystore.type=PEM')
    if trusted.location is not None and trusted.certificates is not None:
        raise ConfigError(
            'config "ssl.truststore.location" and "ssl.truststore.certificates" are both set: give the certificates '
            "only once"
        )
    if config.client_auth is not ClientAuth.NONE and trusted.location is None and trusted.certificates is None:
        raise ConfigError(
            f'config "ssl.client.auth" is "{config.client_auth}" but no authority is trusted: set '
            "ssl.truststore.location to the certificates of the authorities that sign client certificates"
        )

"""Typed view of the configs of SASL."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.model.configs.broker_security import JAAS_OF_A_LISTENER
from headrace.model.configs.definition import ConfigError
from headrace.model.configs.delegation_tokens import TokenConfig, token_config
from headrace.model.configs.oauth import OAUTHBEARER, OAuthConfig, oauth_config
from headrace.model.configs.tls import ConfigValues
from headrace.model.jaas import parse_jaas

PLAIN = "PLAIN"
_PLAIN_MODULE = "PlainLoginModule"
_JAAS = re.compile(JAAS_OF_A_LISTENER)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslConfig:
    """Configs of the listeners with SASL."""

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str] = field(repr=False)
    """The users of PLAIN."""
    listener_passwords: Mapping[str, Mapping[str, str]] = field(repr=False)
    """The same for listeners that have their own."""
    request_bytes_max: int
    """Of a request before authentication."""
    session_ms_max: int | None
    """None if clients need not authenticate again."""
    failure_delay_ms: int
    oauth: OAuthConfig
    tokens: TokenConfig

    def users_of_plain(self, listener: str) -> Mapping[str, str]:
        return self.listener_passwords.get(listener, self.passwords)


def sasl_config(values: ConfigValues, static: Mapping[str, str]) -> SaslConfig:
    """`static` has the texts of the file, the environment and the command line, by config."""
    common = values.optional_text("sasl.jaas.config")
    of_listeners = {
        found["listener"].upper(): _passwords(text)
        for name, text in static.items()
        if (found := _JAAS.fullmatch(name)) is not None and found["mechanism"] == PLAIN.lower()
    }
    return SaslConfig(
        mechanisms=values.items("sasl.enabled.mechanisms"),
        passwords={} if common is None else _passwords(common),
        listener_passwords=of_listeners,
        request_bytes_max=values.whole("sasl.server.max.receive.size"),
        session_ms_max=values.whole("connections.max.reauth.ms") or None,
        failure_delay_ms=values.whole("connection.failed.authentication.delay.ms"),
        oauth=oauth_config(values),
        tokens=token_config(values),
    )


def _passwords(text: str) -> Mapping[str, str]:
    module = parse_jaas(text)
    return module.users if module.name == _PLAIN_MODULE else {}


def check_sasl(config: SaslConfig, listener: str) -> None:
    """Raise ConfigError if no client could authenticate at a listener with SASL."""
    if PLAIN in config.mechanisms and not config.users_of_plain(listener):
        raise ConfigError(
            f'listener "{listener}" has the mechanism PLAIN and no user of it: set '
            f"listener.name.{listener.lower()}.plain.sasl.jaas.config to "
            "org.apache.kafka.common.security.plain.PlainLoginModule required user_NAME=PASSWORD;"
        )
    if OAUTHBEARER in config.mechanisms and config.oauth.keys_url is None:
        raise ConfigError(
            f'listener "{listener}" has the mechanism OAUTHBEARER and no keys to check tokens with: set '
            "sasl.oauthbearer.jwks.endpoint.url to the address of the identity provider's keys (jwks_uri)"
        )

"""Typed view of the configs of SASL."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.model.configs.broker_security import JAAS_OF_A_LISTENER, OAUTH_OF_A_LISTENER, OAUTH_ROWS
from headrace.model.configs.definition import ConfigError, ConfigValue, parse_value
from headrace.model.configs.delegation_tokens import TokenConfig, token_config
from headrace.model.configs.oauth import OAUTHBEARER, OAuthConfig, oauth_config
from headrace.model.configs.typed_values import TypedValues
from headrace.model.jaas import parse_jaas

PLAIN = "PLAIN"
_PLAIN_MODULE = "PlainLoginModule"
_JAAS = re.compile(JAAS_OF_A_LISTENER)
_OAUTH = re.compile(OAUTH_OF_A_LISTENER)
_OAUTH_KEYS = {key.name: key for key in OAUTH_ROWS}


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
    """The identity provider of OAUTHBEARER."""
    listener_oauth: Mapping[str, OAuthConfig]
    """The same for listeners that have their own."""
    tokens: TokenConfig

    def users_of_plain(self, listener: str) -> Mapping[str, str]:
        return self.listener_passwords.get(listener, self.passwords)

    def oauth_of(self, listener: str) -> OAuthConfig:
        return self.listener_oauth.get(listener, self.oauth)


def sasl_config(values: TypedValues, static: Mapping[str, str]) -> SaslConfig:
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
        listener_oauth=_oauth_of_listeners(values, static),
        tokens=token_config(values),
    )


def _oauth_of_listeners(values: TypedValues, static: Mapping[str, str]) -> dict[str, OAuthConfig]:
    own: dict[str, dict[str, ConfigValue]] = {}
    for name, text in static.items():
        found = _OAUTH.fullmatch(name)
        if found is not None:
            own.setdefault(found["listener"].upper(), {})[found["name"]] = parse_value(_OAUTH_KEYS[found["name"]], text)
    return {listener: oauth_config(values.changed(changed)) for listener, changed in own.items()}


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
    if OAUTHBEARER in config.mechanisms and config.oauth_of(listener).keys_url is None:
        raise ConfigError(
            f'listener "{listener}" has the mechanism OAUTHBEARER and no keys to check tokens with: set '
            "sasl.oauthbearer.jwks.endpoint.url to the address of the identity provider's keys (jwks_uri)"
        )

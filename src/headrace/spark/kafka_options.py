"""Options with the prefix `kafka.`: translate settings of Kafka's clients to those of this client, or refuse them by
name.

Java's names of the security settings are supported for PEM files: this client cannot read Java key stores.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from headrace.client.config import ClientConfig
from headrace.client.errors import InvalidArgument
from headrace.spark.option_names import KAFKA_PREFIX, OptionError

BOOTSTRAP = "bootstrap.servers"

_SET_BY_SPARK = {
    "auto.offset.reset": 'use "startingOffsets"',
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint",
    "key.deserializer": 'keys are bytes; see "valueFormat"',
    "value.deserializer": 'values are bytes; see "valueFormat"',
    "key.serializer": "keys are bytes or text columns",
    "value.serializer": "values are bytes or text columns",
    "interceptor.classes": "interceptors are not supported",
}

_RENAMED = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.keystore.location": "ssl.certificate.location",
    "ssl.keystore.password": "ssl.key.password",
    "sasl.mechanisms": "sasl.mechanism",
}

_JAVA_STORES = (".jks", ".p12", ".pfx", ".keystore", ".truststore")
_PEM_ONLY = "only PEM files can be read; convert it with keytool and openssl"

_SAID_BY_JAAS = ("sasl.username", "sasl.password")
_JAAS_MODULES = ("PlainLoginModule", "ScramLoginModule")


def client_settings(options: Mapping[str, str]) -> dict[str, Any]:
    """Return everything under `kafka.` by Kafka's own names, as `ClientConfig.from_names` accepts it."""
    found: dict[str, Any] = {}
    written: dict[str, str] = {}
    for option, name, value in _given(options):
        if found.get(name, value) != value:
            raise OptionError(f'options "{written[name]}" and "{option}" contradict each other: give one of them')
        found[name], written[name] = value, option
    if not str(found.get(BOOTSTRAP) or "").strip():
        raise OptionError(f'option "{KAFKA_PREFIX}{BOOTSTRAP}" is missing: set it to host:port of some brokers')
    return found


def _given(options: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
    """Yield each setting: the option as written, the client's name of it, and its value."""
    for given, text in options.items():
        option = given.lower()
        name = option.removeprefix(KAFKA_PREFIX)
        if option == BOOTSTRAP:
            yield option, BOOTSTRAP, text
        elif name in _SET_BY_SPARK and name != option:
            raise OptionError(f'option "{option}" cannot be set: {_SET_BY_SPARK[name]}')
        elif name != option:
            for own_name, value in _translated(name, text).items():
                yield option, own_name, value


def checked(kind: type[ClientConfig], settings: Mapping[str, Any], options: Mapping[str, str]) -> ClientConfig:
    """Return the config of that kind of client; an unknown setting is an error that names the option as written."""
    try:
        return kind.from_names(settings)
    except InvalidArgument as error:
        text = str(error)
        written = {name: option for option, name, _value in _given(options)}
        meant = _meant_by(text, settings)
        option = written.get(meant, f"{KAFKA_PREFIX}{meant}")
        for name in (each.name for each in fields(kind) if "_" in each.name):
            dotted = name.replace("_", ".")
            text = re.sub(rf"\b{name}\b", written.get(dotted, f"{KAFKA_PREFIX}{dotted}"), text)
        raise OptionError(f'option "{option}" is not supported by this client: {text}') from None


def _meant_by(text: str, settings: Mapping[str, Any]) -> str:
    """Return the setting that a message of the client is about: the one it names first, else one whose value it
    quotes.
    """
    places = {name: max(text.find(name), text.find(name.replace(".", "_"))) for name in settings}
    named = [name for name in settings if places[name] >= 0]
    quoted = [name for name, value in settings.items() if any(repr(part) in text for part in str(value).split(","))]
    return min(named, key=lambda name: places[name]) if named else next(iter(quoted), "*")


def _translated(name: str, text: str) -> dict[str, Any]:
    if name == "sasl.jaas.config":
        return _credentials(text)
    if name == "ssl.endpoint.identification.algorithm":
        return {"ssl.check.hostname": str(text.strip().lower() == "https").lower()}
    if name in ("ssl.truststore.type", "ssl.keystore.type"):
        if text.strip().upper() != "PEM":
            raise OptionError(f'option "{KAFKA_PREFIX}{name}" is "{text}": {_PEM_ONLY}')
        return {}
    if name in ("ssl.truststore.location", "ssl.keystore.location") and text.strip().lower().endswith(_JAVA_STORES):
        raise OptionError(f'option "{KAFKA_PREFIX}{name}" is "{text}", a Java key store: {_PEM_ONLY}')
    return {_RENAMED.get(name, name): text}


def _credentials(text: str) -> dict[str, Any]:
    """Extract user and password from the line that Java's clients use."""
    found = dict(re.findall(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"', text))
    if not any(module in text for module in _JAAS_MODULES) or not {"username", "password"} <= found.keys():
        raise OptionError(
            f'option "{KAFKA_PREFIX}sasl.jaas.config" is supported for {" and ".join(_JAAS_MODULES)} with '
            "username and password; otherwise set "
            f"{' and '.join(KAFKA_PREFIX + each for each in _SAID_BY_JAAS)}"
        )
    return {
        "sasl.username": re.sub(r"\\(.)", r"\1", found["username"]),
        "sasl.password": re.sub(r"\\(.)", r"\1", found["password"]),
    }

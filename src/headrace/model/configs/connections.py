"""Typed view of the limits on connections of clients."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.model.addresses import canonical_host
from headrace.model.configs.layers import BrokerLayers
from headrace.model.configs.typed_values import TypedValues

UNLIMITED = 2**31 - 1
"""Kafka's default of the limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionConfig:
    count_max: int
    per_address_max: int
    overrides: Mapping[str, int]
    """Limits of single addresses, in their canonical form."""
    rate_max: int | None
    """New connections per second; None for no limit."""
    listener_count_max: Mapping[str, int]
    """By listener."""
    listener_rate_max: Mapping[str, int | None]


def connection_config(values: TypedValues, layers: BrokerLayers, listeners: Iterable[str]) -> ConnectionConfig:
    names = tuple(listeners)
    return ConnectionConfig(
        count_max=values.whole("max.connections"),
        per_address_max=values.whole("max.connections.per.ip"),
        overrides=_overrides(values.items("max.connections.per.ip.overrides")),
        rate_max=_rate(values.whole("max.connection.creation.rate")),
        listener_count_max={name: _whole(layers, name, "max.connections") for name in names},
        listener_rate_max={name: _rate(_whole(layers, name, "max.connection.creation.rate")) for name in names},
    )


def _whole(layers: BrokerLayers, listener: str, config: str) -> int:
    value = layers.value(f"listener.name.{listener.lower()}.{config}")
    assert isinstance(value, int)
    return value


def _rate(rate: int) -> int | None:
    return None if rate == UNLIMITED else rate


def _overrides(items: Iterable[str]) -> Mapping[str, int]:
    """Return limits by address; the items are known to be valid."""
    parts = (item.rpartition(":") for item in items)
    return {canonical_host(address): int(count) for address, _colon, count in parts}

"""Definition of a config (name, type, default, bounds, update mode), and tables that parse and format values."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

from headrace.model.nearest_names import nearest_of, question

ConfigValue = bool | int | float | str | tuple[str, ...] | None
"""A parsed value; None for a config without a value."""

VALUE_LENGTH_MAX = 32_767
"""Characters of a value: the maximum of a non-compact string on the wire."""

REPLICAS_OF_REPLICATED = 3
"""The number of replicas from which a topic can lose one and still have two."""

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


class ConfigType(IntEnum):
    """Type codes of a DescribeConfigs response."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Scope(StrEnum):
    """Update mode: whether a running broker accepts a new value, and for which scope."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class ConfigError(ValueError):
    """A config name or value was refused; the message says what to do next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """A broker config that is the default of a topic config, and a factor such as hours to milliseconds."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    name: str
    type: ConfigType
    default: ConfigValue
    documentation: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    validator: Callable[[str], str | None] | None = None
    """A check of the text; returns the reason if it is invalid."""
    scope: Scope = Scope.READ_ONLY
    sensitive: bool = False
    counterparts: tuple[Counterpart, ...] = ()
    """The broker configs that set the default of a topic config, most specific first."""
    replicated_default: ConfigValue = None
    """The default of a topic config for topics with `REPLICAS_OF_REPLICATED` replicas or more, if it differs."""
    honoured: bool = True
    """False for a config that is stored and described as in Kafka but has no effect in this release; values other
    than the default are accepted with a warning, or refused."""
    refusal: str = ""
    """The reason why other values than the default are refused, and what to do instead: they would promise access
    control, a limit or storage that the broker does not have."""

    @property
    def description(self) -> str:
        if self.honoured:
            return self.documentation
        if self.refusal:
            return f"{self.documentation} Values other than the default are refused: {self.refusal}."
        return f"{self.documentation} Has no effect in this release."


_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_NATURAL_BOUNDS: Mapping[ConfigType, tuple[int, int]] = {
    ConfigType.INT: (-(2**31), INT32_MAX),
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.LONG: (-(2**63), INT64_MAX),
}


def parse_value(key: ConfigKey, text: str) -> ConfigValue:
    """Return the typed value of `text`; raise ValueError with the reason if it is invalid."""
    if len(text) > VALUE_LENGTH_MAX:
        raise ValueError(f"is {len(text)} characters long, at most {VALUE_LENGTH_MAX} are allowed")
    if "\x00" in text:
        raise ValueError("contains a null character")
    text = text if key.type is ConfigType.PASSWORD else text.strip()
    if key.validator is not None:
        reason = key.validator(text)
        if reason is not None:
            raise ValueError(reason)
    match key.type:
        case ConfigType.BOOLEAN:
            return _parse_boolean(text)
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return _parse_whole(key, text)
        case ConfigType.DOUBLE:
            return _parse_double(key, text)
        case ConfigType.LIST:
            return _parse_list(key, text)
        case _:
            if key.choices and text not in key.choices:
                raise ValueError(f"must be one of {', '.join(key.choices)}")
            return text


def _parse_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError("must be true or false")
    return lowered == "true"


def _parse_whole(key: ConfigKey, text: str) -> int:
    natural_low, natural_high = _NATURAL_BOUNDS[key.type]
    low = natural_low if key.low is None else int(key.low)
    high = natural_high if key.high is None else int(key.high)
    if not _WHOLE_NUMBER.fullmatch(text) or not low <= int(text) <= high:
        raise ValueError(f"must be a whole number from {low} to {high}")
    return int(text)


def _parse_double(key: ConfigKey, text: str) -> float:
    low = float("-inf") if key.low is None else key.low
    high = float("inf") if key.high is None else key.high
    if not _NUMBER.fullmatch(text) or not low <= float(text) <= high:
        raise ValueError(f"must be a number from {low} to {high}")
    return float(text)


def _parse_list(key: ConfigKey, text: str) -> tuple[str, ...]:
    items = tuple(item.strip() for item in text.split(",")) if text else ()
    if any(not item for item in items):
        raise ValueError("has an empty item between its commas")
    if key.choices:
        wrong = [item for item in items if item not in key.choices]
        if wrong or not items:
            raise ValueError(f"must be a comma-separated list of {', '.join(key.choices)}")
    return items


def render_value(value: ConfigValue) -> str | None:
    """Return the text of a value, as in a DescribeConfigs response."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


class ConfigTable:
    """All configs of one kind of resource, by name."""

    def __init__(
        self,
        kind: str,
        keys: Iterable[ConfigKey],
        renamed: Mapping[str, str] | None = None,
        prefixed: Iterable[tuple[str, str]] = (),
    ) -> None:
        """`prefixed` has patterns of further names, each with the name of the config that defines their values."""
        self.kind = kind
        self._prefixed = tuple((re.compile(pattern), name) for pattern, name in prefixed)
        self._keys: dict[str, ConfigKey] = {}
        for key in keys:
            assert key.name not in self._keys, f"{key.name} is in the table twice"
            self._keys[key.name] = key
        self._renamed = dict(renamed or {})
        """Names that are valid elsewhere, with the names to use here."""

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self._keys.values())

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def get(self, name: str) -> ConfigKey | None:
        found = self._keys.get(name)
        if found is None:
            for pattern, definition in self._prefixed:
                if pattern.fullmatch(name):
                    return replace(self._keys[definition], name=name)
        return found

    def lookup(self, name: str, *, subject: str = "") -> ConfigKey:
        """Return the config with this name; raise ConfigError with the nearest valid name if there is none."""
        key = self.get(name)
        if key is None:
            raise ConfigError(self._unknown(name, subject))
        return key

    def parse(self, name: str, text: str, *, subject: str = "") -> ConfigValue:
        """Return the typed value of `text` for config `name` of `subject` (such as `topic "orders"`)."""
        key = self.lookup(name, subject=subject)
        try:
            return parse_value(key, text)
        except ValueError as wrong:
            shown = "(hidden)" if key.sensitive else f'"{_shorten(text)}"'
            raise ConfigError(f'config "{name}"{_for(subject)} is {shown}: {wrong}') from None

    def parse_all(self, texts: Mapping[str, str], *, subject: str = "") -> dict[str, ConfigValue]:
        return {name: self.parse(name, text, subject=subject) for name, text in texts.items()}

    def check_served(self, name: str, text: str, *, subject: str = "") -> None:
        """Raise ConfigError for a value that promises something that the broker does not support.

        Stored values are not checked: a data folder of an earlier version must open.
        """
        key = self.lookup(name, subject=subject)
        if key.refusal and self.parse(name, text, subject=subject) != key.default:
            raise ConfigError(f'config "{name}"{_for(subject)} cannot be "{_shorten(text)}": {key.refusal}')

    def without_effect(self, texts: Mapping[str, str]) -> list[str]:
        """Return the names of configs that differ from their default and have no effect."""
        return [
            name
            for name, text in texts.items()
            if not (key := self.lookup(name)).honoured and self.parse(name, text) != key.default
        ]

    def appended(self, name: str, current: str | None, addition: str, *, subject: str = "") -> str:
        """Return the text of list config `name` with the items of `addition` added (IncrementalAlterConfigs APPEND)."""
        items, added = self._list_operands(name, current, addition, subject)
        return ",".join((*items, *(item for item in dict.fromkeys(added) if item not in items)))

    def subtracted(self, name: str, current: str | None, removal: str, *, subject: str = "") -> str:
        """Return the text of list config `name` without the items of `removal` (IncrementalAlterConfigs SUBTRACT)."""
        items, removed = self._list_operands(name, current, removal, subject)
        return ",".join(item for item in items if item not in removed)

    def _list_operands(
        self, name: str, current: str | None, operand: str, subject: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        key = self.lookup(name, subject=subject)
        if key.type is not ConfigType.LIST:
            raise ConfigError(
                f'config "{name}"{_for(subject)} is not a list: set it instead of appending or subtracting'
            )
        items = key.default if current is None else self.parse(name, current, subject=subject)
        changed = self.parse(name, operand, subject=subject)
        assert isinstance(items, tuple)
        assert isinstance(changed, tuple)
        return items, changed

    def _unknown(self, name: str, subject: str) -> str:
        nearest = self._renamed.get(name) or nearest_of(name, self._keys)
        guess = f": {question(nearest)}" if nearest else ""
        shown = _shorten(name)
        return f'unknown config "{shown}"{_for(subject)}{guess} (headrace configs list --{self.kind} shows all)'


def _for(subject: str) -> str:
    return f" for {subject}" if subject else ""


def _shorten(text: str, length_max: int = 80) -> str:
    """Return a text for an error message: control characters escaped, the end cut off."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:length_max])
    return shown if len(text) <= length_max else f"{shown}..."


def row(
    name: str,
    type: ConfigType,
    default: ConfigValue,
    documentation: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    validator: Callable[[str], str | None] | None = None,
    scope: Scope = Scope.READ_ONLY,
    sensitive: bool = False,
    broker: tuple[tuple[str, int], ...] = (),
    replicated_default: ConfigValue = None,
    honoured: bool = True,
    refusal: str = "",
) -> ConfigKey:
    """Return a row of a table; `broker` lists the broker configs of a topic config as (name, factor)."""
    return ConfigKey(
        name=name,
        type=type,
        default=default,
        documentation=documentation,
        low=low,
        high=high,
        choices=choices,
        validator=validator,
        scope=scope,
        sensitive=sensitive,
        counterparts=tuple(Counterpart(name=counterpart, factor=factor) for counterpart, factor in broker),
        replicated_default=replicated_default,
        honoured=honoured and not refusal,
        refusal=refusal,
    )

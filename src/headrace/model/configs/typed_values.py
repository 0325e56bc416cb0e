"""Parsed values of configs, read by the type that each of them has."""

from collections.abc import Mapping

from headrace.model.configs.definition import ConfigValue


class TypedValues:
    """Parsed values by name, with an accessor for each type."""

    def __init__(self, values: Mapping[str, ConfigValue]) -> None:
        self._values = values

    def changed(self, values: Mapping[str, ConfigValue]) -> "TypedValues":
        """Return the values with others in the place of some."""
        return TypedValues({**self._values, **values})

    def whole(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int), name
        return value

    def number(self, name: str) -> float:
        value = self._values[name]
        assert isinstance(value, int | float), name
        return float(value)

    def flag(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool), name
        return value

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), name
        return value

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if self._values[name] is not None else None

    def items(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        assert value is None or isinstance(value, tuple), name
        return value or ()

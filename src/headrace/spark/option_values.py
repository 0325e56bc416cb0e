"""Parse option values: numbers, booleans, durations, choices, and offsets of partitions as JSON."""

import json
import re
from collections.abc import Mapping
from typing import Any

from headrace.model.ids import TopicPartition
from headrace.spark.option_names import OptionError

INT64_MAX = 2**63 - 1

_DURATION_MS = {"ms": 1, "": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class OptionReader:
    """The options of one source, looked up by name in any case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}

    def has(self, name: str) -> bool:
        return name.lower() in self._options

    def text(self, name: str) -> str | None:
        found = self._options.get(name.lower())
        if found is not None and not found.strip():
            raise OptionError(f'option "{name}" is empty: give it a value or leave it out')
        return found.strip() if found is not None else None

    def number(self, name: str, *, least: int = 1) -> int | None:
        found = self.text(name)
        if found is None:
            return None
        if not re.fullmatch(r"-?\d{1,19}", found) or not least <= int(found) <= INT64_MAX:
            raise OptionError(
                f'option "{name}" must be a whole number of at least {least} and less than 2^63, not "{found}"'
            )
        return int(found)

    def truth(self, name: str, *, default: bool) -> bool:
        found = self.text(name)
        if found is None:
            return default
        if found.lower() not in ("true", "false"):
            raise OptionError(f'option "{name}" must be true or false, not "{found}"')
        return found.lower() == "true"

    def choice(self, name: str, choices: tuple[str, ...], *, default: str) -> str:
        found = self.text(name)
        if found is None:
            return default
        if found.lower() not in choices:
            raise OptionError(f'option "{name}" must be one of {", ".join(choices)}, not "{found}"')
        return found.lower()

    def duration_ms(self, name: str, *, default_ms: int) -> int:
        found = self.text(name)
        if found is None:
            return default_ms
        match = re.fullmatch(r"(\d{1,12})\s*([a-z]*)", found.lower())
        if match is None or match[2] not in _DURATION_MS:
            raise OptionError(f'option "{name}" must be a duration such as 500ms, 10s, 15m or 1h, not "{found}"')
        return int(match[1]) * _DURATION_MS[match[2]]

    def numbers_by_partition(self, name: str, *, least: int) -> dict[TopicPartition, int] | None:
        """{"topic": {"0": 23, "1": -2}}"""
        found = self.text(name)
        if found is None:
            return None
        example = 'a JSON object such as {"orders": {"0": 23, "1": 42}}'
        tree = _parsed(name, found, example)
        numbers: dict[TopicPartition, int] = {}
        for topic, inner in tree.items():
            if not isinstance(inner, dict):
                raise OptionError(
                    f'option "{name}" must be {example}; topic "{topic}" must have an object of partitions'
                )
            for index, number in inner.items():
                if not re.fullmatch(r"\d{1,9}", index) or type(number) is not int or not least <= number <= INT64_MAX:
                    raise OptionError(
                        f'option "{name}" must be {example}; "{index}": {json.dumps(number)} is not valid'
                    )
                numbers[TopicPartition(topic, int(index))] = number
        if not numbers:
            raise OptionError(f'option "{name}" names no partition: it must be {example}')
        return numbers

    def partitions(self, name: str) -> tuple[TopicPartition, ...] | None:
        """{"topic": [0, 1]}"""
        found = self.text(name)
        if found is None:
            return None
        example = 'a JSON object such as {"orders": [0, 1]}'
        tree = _parsed(name, found, example)
        for topic, indexes in tree.items():
            if not isinstance(indexes, list) or not all(type(each) is int and each >= 0 for each in indexes):
                raise OptionError(
                    f'option "{name}" must be {example}; topic "{topic}" must have a list of partition numbers'
                )
        chosen = {TopicPartition(topic, index) for topic, indexes in tree.items() for index in indexes}
        if not chosen:
            raise OptionError(f'option "{name}" names no partition: it must be {example}')
        return tuple(sorted(chosen))


def _parsed(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        raise OptionError(f'option "{name}" must be {example}, not {text}')
    return tree

"""A fuzz target: a reader of bytes, inputs to begin with, and the source files whose lines it should reach."""

from collections.abc import Callable
from dataclasses import dataclass

INPUT_BYTES_MAX = 8192


class Finding(Exception):
    """A property that does not hold for an input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    name: str
    read: Callable[[bytes], bool]
    """True when the input was accepted, False when it was refused as documented; whatever it raises is a finding."""

    seeds: Callable[[], list[bytes]]
    sources: tuple[str, ...]
    """Under src/headrace: the files whose line coverage is measured."""


def require(holds: bool, property_: str) -> None:
    if not holds:
        raise Finding(property_)

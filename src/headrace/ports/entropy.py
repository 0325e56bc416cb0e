"""The Entropy port: the only source of randomness."""

from typing import Protocol


class Entropy(Protocol):
    def random_bytes(self, count: int) -> bytes: ...

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound)."""

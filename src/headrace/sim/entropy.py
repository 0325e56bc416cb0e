"""The Entropy port, drawn from a seed, with independent named branches."""

import hashlib
import random


class SeededEntropy:
    """One stream of draws. Each part of the world takes a branch, so that a new draw in one does not affect the
    others.
    """

    __slots__ = ("_bits", "_random", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = random.Random(seed)  # noqa: S311 - repeatable is the point here
        self._bits = self._random.getrandbits

    def branch(self, name: str) -> "SeededEntropy":
        digest = hashlib.sha256(f"{self._seed}/{name}".encode()).digest()
        return SeededEntropy(int.from_bytes(digest[:8], "big"))

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def below(self, bound: int) -> int:
        """Draw as `Random.randrange` does, whose checks take longer than the draw: runs draw half a million times."""
        length = bound.bit_length()
        drawn = self._bits(length)
        while drawn >= bound:
            drawn = self._bits(length)
        return drawn

    def one_in(self, count: int) -> bool:
        """Return true once in `count` draws on average; never for 0."""
        return count > 0 and self.below(count) == 0

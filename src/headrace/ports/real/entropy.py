"""The operating system's randomness behind the Entropy port.

Straight from `os.urandom`, because the standard library's `secrets` costs a starting broker 7 ms of imports.
"""

import os


class RealEntropy:
    __slots__ = ()

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def below(self, bound: int) -> int:
        if bound <= 0:
            raise ValueError(f"there is no number below {bound}")
        bits = (bound - 1).bit_length()
        count = (bits + 7) // 8
        while True:  # each draw is below the bound with a probability of more than a half
            drawn = int.from_bytes(os.urandom(count), "big") >> (8 * count - bits)
            if drawn < bound:
                return drawn

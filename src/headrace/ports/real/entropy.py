"""The operating system's randomness behind the Entropy port."""

import secrets


class RealEntropy:
    __slots__ = ()

    def random_bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)

    def below(self, bound: int) -> int:
        return secrets.randbelow(bound)

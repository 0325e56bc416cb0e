"""Hashes of passwords, by scrypt from the standard library."""

from base64 import b64decode, b64encode
from hashlib import scrypt
from hmac import compare_digest

from headrace.operations.errors import OperationError
from headrace.ports.real.entropy import RealEntropy

COST_BITS, BLOCK, PARALLEL = 14, 8, 5
"""16 MiB and a tenth of a second, as OWASP advises where memory counts."""
SALT_BYTES = 16
HASH_BYTES = 32
MEMORY_BYTES_MAX = 64 << 20
LENGTH_MIN, LENGTH_MAX = 8, 1_024


def check_password(password: str) -> None:
    if not LENGTH_MIN <= len(password) <= LENGTH_MAX:
        raise OperationError(f"a password has {LENGTH_MIN} to {LENGTH_MAX} characters: choose another")


def hashed(password: str) -> str:
    """Return the hash with its parameters, as the catalog keeps it."""
    check_password(password)
    salt = RealEntropy().random_bytes(SALT_BYTES)
    made = _scrypt(password, salt, COST_BITS, BLOCK, PARALLEL)
    return f"scrypt${COST_BITS}${BLOCK}${PARALLEL}${b64encode(salt).decode()}${b64encode(made).decode()}"


def is_password(password: str, stored: str) -> bool:
    """Compare a password with a stored hash."""
    _, cost_bits, block, parallel, salt, wanted = stored.split("$")
    made = _scrypt(password, b64decode(salt), int(cost_bits), int(block), int(parallel))
    return compare_digest(made, b64decode(wanted))


def _scrypt(password: str, salt: bytes, cost_bits: int, block: int, parallel: int) -> bytes:
    return scrypt(
        password.encode(), salt=salt, n=1 << cost_bits, r=block, p=parallel, maxmem=MEMORY_BYTES_MAX, dklen=HASH_BYTES
    )


UNKNOWN = f"scrypt${COST_BITS}${BLOCK}${PARALLEL}${b64encode(bytes(SALT_BYTES)).decode()}$"
UNKNOWN += b64encode(bytes(HASH_BYTES)).decode()
"""Compared with the password of an unknown user, so that it takes the same time. No password has this hash."""

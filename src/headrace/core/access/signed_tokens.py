"""Tokens that an identity provider has signed (JWT, RFC 7519): its public keys, and the checks of a token.

Only signatures with a public key count: with a shared secret, or without a signature, anyone could make a token.
"""

import json
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.model.limits import TOKEN_BYTES_MAX, TOKEN_HEADER_BYTES_MAX, TOKEN_KEYS_MAX

if TYPE_CHECKING:
    from joserfc.jwk import Key
    from joserfc.jws import JWSRegistry

KEY_TYPES = {
    "RS256": "RSA", "RS384": "RSA", "RS512": "RSA", "PS256": "RSA", "PS384": "RSA", "PS512": "RSA",
    "ES256": "EC", "ES384": "EC", "ES512": "EC", "EdDSA": "OKP", "Ed25519": "OKP",
}  # fmt: skip
"""The algorithms that are accepted, with the type of their keys."""
RSA_BITS_MIN = 2_048
RSA_BITS_MAX = 8_192
"""Checks of signatures by longer keys take too long."""
EXPIRY_S_MAX = 2**40
"""Expiry of a token that says a later one: clients count in microseconds, in 64 bits."""


class KeysUnusable(Exception):
    """A document has no key with which a token could be checked."""


class TokenRefused(Exception):
    """A token is not accepted; the message says why, without the token."""


class KeyUnknown(TokenRefused):
    """The provider's keys, as they were fetched, do not have the one that signed the token."""


class _NamedKey(NamedTuple):
    key_id: str | None
    type: str
    algorithm: str | None
    key: "Key"


class SigningKeys:
    """The public keys of a JWKS document (RFC 7517)."""

    def __init__(self, keys: Sequence[_NamedKey]) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, key_id: str | None, algorithm: str) -> "Key":
        """Return the key of a signature. A token may leave out the id of its key if only one key is possible."""
        fitting = [
            each.key
            for each in self._keys
            if each.type == KEY_TYPES[algorithm]
            and each.algorithm in (None, algorithm)
            and key_id in (None, each.key_id)
        ]
        if not fitting:
            raise KeyUnknown("its key is not one of the provider's")
        if key_id is None and len(fitting) > 1:
            raise TokenRefused('it does not name its key ("kid"), and the provider has several')
        return fitting[0]


class TokenRules(NamedTuple):
    """The requirements that a token has to meet."""

    issuer: str | None
    """None for every issuer whose key has signed."""
    audiences: tuple[str, ...]
    """One of them must be the token's; empty if the audience does not matter."""
    clock_skew_s: int
    """The difference of clocks that is tolerated."""
    required: tuple[str, ...] = ()
    """Further claims that the token must have."""
    values: Mapping[str, str] = {}
    """Claims that must have a value."""


def is_installed() -> bool:
    """Return whether the package is there that checks signatures."""
    return find_spec("joserfc") is not None


def parse_keys(document: bytes | Mapping[str, Any]) -> SigningKeys:
    """Return the keys of a JWKS document. Keys of other kinds are left out; raises KeysUnusable if none remains."""
    import joserfc.jwt  # noqa: F401  (here, in a helper thread, so that the first token does not wait for it)
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry

    found = _json_object(document) if isinstance(document, bytes) else document
    if not isinstance(listed := found.get("keys"), list):
        raise KeysUnusable('it is not a JWKS document: it has no list "keys"')
    if len(listed) > TOKEN_KEYS_MAX:
        raise KeysUnusable(f"it has {len(listed)} keys, more than {TOKEN_KEYS_MAX}")
    keys = []
    for each in listed:
        if not _signs(each):
            continue
        try:
            key = JWKRegistry.import_key(each)
        except (JoseError, ValueError, KeyError, TypeError, OverflowError):
            continue  # one key that cannot be read does not make the others useless
        keys.append(_NamedKey(each.get("kid"), each["kty"], each.get("alg"), key))
    if not keys:
        raise KeysUnusable("it has no public key that signs tokens")
    return SigningKeys(keys)


def _json_object(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise KeysUnusable("it is not JSON") from None
    if not isinstance(found, dict):
        raise KeysUnusable("it is not a JSON object")
    return found


def _signs(key: object) -> bool:
    """Return whether a key of the document is a public one for signatures, of a size that is safe and fast enough."""
    if not isinstance(key, dict) or key.get("kty") not in KEY_TYPES.values() or key.get("use") not in (None, "sig"):
        return False
    operations = key.get("key_ops")
    if operations is not None and (not isinstance(operations, list) or "verify" not in operations):
        return False
    if not all(each is None or isinstance(each, str) for each in (key.get("kid"), key.get("alg"))):
        return False
    return key["kty"] != "RSA" or RSA_BITS_MIN <= _bits(key.get("n")) <= RSA_BITS_MAX


def _bits(modulus: object) -> int:
    if not isinstance(modulus, str) or len(modulus) > RSA_BITS_MAX // 4:
        return 0
    try:
        return int.from_bytes(_decoded(modulus)).bit_length()
    except ValueError:
        return 0


def _decoded(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Base64Error, ValueError):
        raise ValueError("not base64url") from None


def checked_claims(token: str, keys: SigningKeys, rules: TokenRules, now_s: float) -> dict[str, Any]:
    """Return the claims of a token after checking its signature and the rules; raise TokenRefused."""
    from joserfc import jwt
    from joserfc.errors import JoseError

    if len(token) > TOKEN_BYTES_MAX:
        raise TokenRefused(f"it has {len(token)} bytes, more than {TOKEN_BYTES_MAX}")
    algorithm, key_id = _header(token)
    key = keys.find(key_id, algorithm)
    try:
        claims: dict[str, Any] = jwt.decode(token, key, registry=_registry(algorithm)).claims
        _claim_checks(rules, now_s).validate(claims)
    except (JoseError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise TokenRefused(_reason(error)) from error
    claims["exp"] = min(claims["exp"], EXPIRY_S_MAX)
    return claims


@cache
def _registry(algorithm: str) -> "JWSRegistry":
    """Return how the signature of a token is read: by this algorithm alone."""
    from joserfc import jws

    class OneAlgorithm(jws.JWSRegistry):
        max_header_length = TOKEN_HEADER_BYTES_MAX

        def get_alg(self, name: str) -> Any:
            if name != algorithm:
                raise ValueError("the header has another algorithm")
            return self.algorithms[name]  # without a warning for EdDSA, as Ed25519 was called before RFC 9864

    return OneAlgorithm(algorithms=[algorithm], strict_check_header=False)


def _header(token: str) -> tuple[str, str | None]:
    """Return the algorithm and the id of the key, which nothing has proven yet."""
    text = token.partition(".")[0]
    try:
        header = json.loads(_decoded(text)) if len(text) <= 2 * TOKEN_HEADER_BYTES_MAX else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or token.count(".") != 2:
        raise TokenRefused("it is not a signed token (JWT)")
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in KEY_TYPES:
        raise TokenRefused("its algorithm is not one of those with a public key")
    if key_id is not None and not isinstance(key_id, str):
        raise TokenRefused("the id of its key is not a text")
    return algorithm, key_id


def _claim_checks(rules: TokenRules, now_s: float) -> Any:
    from joserfc import jwt

    options: dict[str, Any] = {name: {"essential": True} for name in ("exp", "iat", *rules.required)}
    options |= {name: {"essential": True, "value": value} for name, value in rules.values.items()}
    if rules.issuer is not None:
        options["iss"] = {"essential": True, "value": rules.issuer}
    if rules.audiences:
        options["aud"] = {"essential": True, "values": list(rules.audiences)}
    now: Any = now_s  # declared as whole seconds, and compared only
    return jwt.JWTClaimsRegistry(now=now, leeway=rules.clock_skew_s, **options)


def _reason(error: Exception) -> str:
    """Return the reason without the claims, which are the user's own."""
    name = type(error).__name__
    claim = getattr(error, "claim", None)
    return f"{name} ({claim})" if isinstance(claim, str) and claim.isidentifier() else name

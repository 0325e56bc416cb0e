"""Names of properties whose values are secrets, and the text that stands for a secret."""

HIDDEN = "(hidden)"

_SECRET_PARTS = ("password", "secret", "jaas", "token", "keystore.key", "key.pem")


def is_secret_name(name: str) -> bool:
    """Tell whether a property with this name holds a secret, such as sasl.password."""
    lowered = name.lower().replace("_", ".")
    return any(part in lowered for part in _SECRET_PARTS) and not lowered.endswith((".location", ".url", ".file"))

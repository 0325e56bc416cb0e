"""Typed view of the configs of access control."""

from dataclasses import dataclass
from typing import Protocol

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessConfig:
    has_authorizer: bool
    super_users: frozenset[str]
    """Principals such as User:admin, which may do everything."""
    allows_unruled: bool
    """True if everything is allowed on resources without any rule."""


class AccessValues(Protocol):
    def text(self, name: str) -> str: ...
    def flag(self, name: str) -> bool: ...


def access_config(values: AccessValues) -> AccessConfig:
    return AccessConfig(
        has_authorizer=bool(values.text("authorizer.class.name")),
        super_users=frozenset(_principals(values.text("super.users"))),
        allows_unruled=values.flag("allow.everyone.if.no.acl.found"),
    )


def _principals(text: str) -> list[str]:
    return [item.strip() for item in text.split(";") if item.strip()]


def super_users_error(text: str) -> str | None:
    """Check the list of super users, which are separated by semicolons because names may have commas."""
    for principal in _principals(text):
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            return f'"{principal}" must look like User:alice; semicolons separate principals'
    return None

"""Access rules as text: the names of operations, resources and patterns that people, commands and the HTTP API use."""

from enum import IntEnum
from typing import NamedTuple

from headrace.core.access.acls import WILDCARD, AccessRule, PatternType, Permission
from headrace.model.access import AclResourceType, Operation


def label(kind: type[IntEnum], number: int) -> str:
    """Return the name of a value, as in transactional-id; its number if this version does not know it."""
    return kind(number).name.lower().replace("_", "-") if number in list(kind) else str(number)


class RuleText(NamedTuple):
    principal: str
    host: str
    permission: str
    operation: str
    resource: str
    name: str
    pattern: str


def rule_text(rule: AccessRule) -> RuleText:
    return RuleText(
        rule.principal,
        rule.host,
        label(Permission, rule.permission),
        label(Operation, rule.operation),
        label(AclResourceType, rule.resource_type),
        rule.resource_name,
        label(PatternType, rule.pattern_type),
    )


def rule_sentence(rule: AccessRule) -> str:
    """Return a rule for people, such as: allow User:alice read on topic "orders"."""
    principal, host, permission, operation, kind, name, pattern = rule_text(rule)
    of_names = " and names that begin with it" if pattern == "prefixed" else ""
    from_host = "" if host == WILDCARD else f" from {host}"
    return f'{permission} {principal}{from_host} {operation} on {kind} "{name}"{of_names}'

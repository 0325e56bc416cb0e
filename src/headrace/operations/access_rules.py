"""Access rules as text: the names of operations, resources and patterns that commands and the HTTP API use."""

from enum import IntEnum
from typing import NamedTuple

from headrace.client import Admin
from headrace.core.access.acls import AccessDecision, AccessRule, PatternType, Permission, RuleFilter, RuleIndex
from headrace.model.access import AclResourceType, Operation

ANYTHING = RuleFilter(AclResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)


def label(kind: type[IntEnum], number: int) -> str:
    """Return the name of a value, as in transactional-id; its number if this version does not know it."""
    return kind(number).name.lower().replace("_", "-") if number in list(kind) else str(number)


OPERATIONS = {label(Operation, operation): operation for operation in Operation if operation != Operation.ANY}


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


def decide(
    admin: Admin, *, principal: str, host: str, operation: Operation, kind: AclResourceType, name: str
) -> AccessDecision:
    """Return what the rules decide; super users and allow.everyone.if.no.acl.found are not considered."""
    index = RuleIndex()
    for rule in admin.access_rules(ANYTHING):
        index.add(rule)
    return index.decide(principal, host, operation, kind, name)

"""Questions about access rules that commands and the HTTP API ask."""

from headrace.client import Admin
from headrace.core.access.acls import AccessDecision, PatternType, Permission, RuleFilter, RuleIndex
from headrace.core.access.rule_text import label
from headrace.model.access import AclResourceType, Operation

ANYTHING = RuleFilter(AclResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)


OPERATIONS = {label(Operation, operation): operation for operation in Operation if operation != Operation.ANY}


def decide(
    admin: Admin, *, principal: str, host: str, operation: Operation, kind: AclResourceType, name: str
) -> AccessDecision:
    """Return what the rules decide; super users and allow.everyone.if.no.acl.found are not considered."""
    index = RuleIndex()
    for rule in admin.access_rules(ANYTHING):
        index.add(rule)
    return index.decide(principal, host, operation, kind, name)

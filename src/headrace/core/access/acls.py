"""Access rules, and decisions by them as Kafka's StandardAuthorizer makes them.

A rule allows or denies an operation on a resource to a principal from a host. Rules for all resources that match a name
count together: those of the name, those of the wildcard `*`, and those of its prefixes. A rule that denies decides
before any that allows. Without a matching rule the principal is refused.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from headrace.model.access import AclResourceType, Operation
from headrace.model.addresses import same_host

WILDCARD = "*"
WILDCARD_PRINCIPAL = "User:*"


class PatternType(IntEnum):
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    ANY = 1
    DENY = 2
    ALLOW = 3


class AccessRule(NamedTuple):
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


class RuleFilter(NamedTuple):
    """The rules that DescribeAcls and DeleteAcls mean; None and the value ANY match everything."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches(self, rule: AccessRule) -> bool:
        return (
            self.resource_type in (AclResourceType.ANY, rule.resource_type)
            and self._matches_name(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission in (Permission.ANY, rule.permission)
        )

    def _matches_name(self, rule: AccessRule) -> bool:
        name = self.resource_name
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, rule.pattern_type):
            return False
        if name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return name == rule.resource_name
        if rule.pattern_type == PatternType.LITERAL:
            return rule.resource_name in (name, WILDCARD)
        return name.startswith(rule.resource_name)


class AccessDecision(NamedTuple):
    allowed: bool
    rule: AccessRule | None = None
    """The rule that decides; None if none matches."""


_IMPLYING: Mapping[int, frozenset[int]] = {
    Operation.DESCRIBE: frozenset(
        (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    ),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)),
}
"""Operations whose permission permits another one too. A denial denies that operation alone."""

_Rules = dict[str, dict[AccessRule, None]]
"""Rules by their principal, each an ordered set: a decision looks at those of one principal alone."""

_ANY_NAME = "hardcode"
"""The name by which StandardAuthorizer finds that an operation is allowed on resources without rules too."""


class RuleIndex:
    """The rules of a cluster, found by the name of a resource."""

    def __init__(self, *, allows_unruled: bool = False) -> None:
        """With `allows_unruled` everything is allowed on resources for which there is no rule at all."""
        self._allows_unruled = allows_unruled
        self._literal: dict[tuple[int, str], _Rules] = {}
        self._prefixed: dict[tuple[int, str], _Rules] = {}
        self._prefix_lengths: dict[tuple[int, int], int] = {}
        """Names of prefixed rules by resource type and length, so that only lengths in use are tried."""

    def add(self, rule: AccessRule) -> None:
        table = self._table(rule)
        key = (rule.resource_type, rule.resource_name)
        if key not in table and table is self._prefixed:
            length = (rule.resource_type, len(rule.resource_name))
            self._prefix_lengths[length] = self._prefix_lengths.get(length, 0) + 1
        table.setdefault(key, {}).setdefault(rule.principal, {})[rule] = None

    def remove(self, rule: AccessRule) -> None:
        table = self._table(rule)
        key = (rule.resource_type, rule.resource_name)
        by_principal = table[key]
        del by_principal[rule.principal][rule]
        if not by_principal[rule.principal]:
            del by_principal[rule.principal]
        if by_principal:
            return
        del table[key]
        if table is self._prefixed:
            length = (rule.resource_type, len(rule.resource_name))
            self._prefix_lengths[length] -= 1
            if not self._prefix_lengths[length]:
                del self._prefix_lengths[length]

    def _table(self, rule: AccessRule) -> dict[tuple[int, str], _Rules]:
        return self._prefixed if rule.pattern_type == PatternType.PREFIXED else self._literal

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> AccessDecision:
        allowing: AccessRule | None = None
        has_rules = False
        for by_principal in self._of_resource(resource_type, name):
            has_rules = True
            for rule in _rules_for(by_principal, principal, host):
                if rule.permission == Permission.DENY:
                    if rule.operation in (operation, Operation.ALL):
                        return AccessDecision(False, rule)
                elif allowing is None and _permits(rule.operation, operation):
                    allowing = rule
        if allowing is not None:
            return AccessDecision(True, allowing)
        return AccessDecision(self._allows_unruled and not has_rules)

    def permits_some(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Return whether the operation is allowed on at least one resource that may exist (KIP-679)."""
        if self.decide(principal, host, operation, resource_type, _ANY_NAME).allowed:
            return True

        def concerned(permission: int, table: dict[tuple[int, str], _Rules]) -> set[str]:
            return {
                name
                for (of_type, name), by_principal in table.items()
                if of_type == resource_type
                for rule in _rules_for(by_principal, principal, host)
                if rule.permission == permission and rule.operation in (operation, Operation.ALL)
            }

        denied = concerned(Permission.DENY, self._literal)
        if WILDCARD in denied:
            return False
        allowed = concerned(Permission.ALLOW, self._literal)
        if WILDCARD in allowed:
            return True
        prefixes = tuple(concerned(Permission.DENY, self._prefixed))
        names = (allowed - denied) | concerned(Permission.ALLOW, self._prefixed)
        return any(not name.startswith(prefixes) for name in names)

    def _of_resource(self, resource_type: int, name: str) -> Iterator[_Rules]:
        for literal in (name, WILDCARD) if name != WILDCARD else (name,):
            found = self._literal.get((resource_type, literal))
            if found is not None:
                yield found
        for of_type, length in self._prefix_lengths:
            if of_type == resource_type and length <= len(name):
                found = self._prefixed.get((resource_type, name[:length]))
                if found is not None:
                    yield found


def _rules_for(by_principal: _Rules, principal: str, host: str) -> Iterator[AccessRule]:
    """Yield the rules for this principal from this host; both ends spell an IPv6 address in one way."""
    for named in (principal, WILDCARD_PRINCIPAL):
        for rule in by_principal.get(named, ()):
            if rule.host in (host, WILDCARD) or same_host(rule.host, host):
                yield rule


def _permits(permitted: int, operation: int) -> bool:
    return permitted in (operation, Operation.ALL) or permitted in _IMPLYING.get(operation, ())

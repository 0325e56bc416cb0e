"""Decide on access rules: create them, and delete those that filters match (CreateAcls, DeleteAcls)."""

from collections.abc import Sequence
from typing import NamedTuple

from headrace.core.access.acls import AccessRule, PatternType, Permission, RuleFilter
from headrace.core.controller.commands import ControllerDecision, Refused
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import (
    ACCESS_LEVEL,
    METADATA_VERSION,
    AccessRuleRecord,
    Record,
    RemoveAccessRuleRecord,
)
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode

RULES_PER_REQUEST_MAX = 10_000
RULES_MAX = 100_000
"""Access rules of the cluster."""
NAME_LENGTH_MAX = 1_000
"""Characters of the name of a resource, a principal or a host in a rule."""

OPERATIONS: dict[int, frozenset[Operation]] = {
    AclResourceType.TOPIC: frozenset(
        {
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DESCRIBE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    AclResourceType.GROUP: frozenset(
        {
            Operation.READ,
            Operation.DESCRIBE,
            Operation.DELETE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    AclResourceType.CLUSTER: frozenset(
        {
            Operation.CREATE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
            Operation.ALTER,
            Operation.DESCRIBE,
        }
    ),
    AclResourceType.TRANSACTIONAL_ID: frozenset({Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT}),
    AclResourceType.DELEGATION_TOKEN: frozenset({Operation.DESCRIBE}),
    AclResourceType.USER: frozenset({Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS}),
}
"""The operations that each kind of resource has, besides ALL."""


class RuleResult(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class DeletedRules(NamedTuple):
    """The result of one filter."""

    rules: tuple[AccessRule, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def create_rules(
    image: MetadataImage, rules: Sequence[AccessRule], rule_ids: Sequence[bytes]
) -> ControllerDecision[tuple[RuleResult, ...]]:
    """Create the valid rules; one that exists already counts as created. Each rule gets the id at its place."""
    records: list[Record] = []
    results: list[RuleResult] = []
    known = dict.fromkeys(image.access_rules.values())
    for rule, rule_id in zip(rules, rule_ids, strict=True):
        try:
            _check_level(image)
            if len(rules) > RULES_PER_REQUEST_MAX:
                raise Refused(
                    ErrorCode.POLICY_VIOLATION,
                    f"one request may create at most {RULES_PER_REQUEST_MAX} rules: send several requests",
                )
            if len(known) >= RULES_MAX:
                raise Refused(ErrorCode.POLICY_VIOLATION, f"the cluster may have at most {RULES_MAX} access rules")
            _check(rule)
        except Refused as refusal:
            results.append(RuleResult(refusal.code, refusal.message))
            continue
        results.append(RuleResult())
        if rule not in known:
            known[rule] = None
            records.append(AccessRuleRecord(rule_id, *rule))
    return ControllerDecision(tuple(records), tuple(results))


def delete_rules(image: MetadataImage, filters: Sequence[RuleFilter]) -> ControllerDecision[tuple[DeletedRules, ...]]:
    """Delete the rules that one of the filters matches."""
    deleted: dict[bytes, None] = {}
    results: list[DeletedRules] = []
    for wanted in filters:
        try:
            _check_level(image)
            check_filter(wanted)
        except Refused as refusal:
            results.append(DeletedRules((), refusal.code, refusal.message))
            continue
        matching = [(rule_id, rule) for rule_id, rule in image.access_rules.items() if wanted.matches(rule)]
        deleted.update(dict.fromkeys(rule_id for rule_id, _rule in matching))
        results.append(DeletedRules(tuple(rule for _rule_id, rule in matching)))
    return ControllerDecision(tuple(RemoveAccessRuleRecord(rule_id) for rule_id in deleted), tuple(results))


def check_filter(wanted: RuleFilter) -> None:
    """Raise Refused for a filter with numbers that do not exist."""
    known = (
        wanted.resource_type in list(AclResourceType),
        wanted.pattern_type in list(PatternType),
        wanted.operation in list(Operation),
        wanted.permission in list(Permission),
    )
    if not all(known):
        raise _invalid("the filter has an unknown resource type, pattern type, operation or permission")


def _check_level(image: MetadataImage) -> None:
    if image.metadata_version < ACCESS_LEVEL:
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION,
            f"access rules need {METADATA_VERSION} {ACCESS_LEVEL}, the cluster is at {image.metadata_version}: raise "
            "it by headrace cluster features",
        )


def _check(rule: AccessRule) -> None:
    operations = OPERATIONS.get(rule.resource_type)
    if operations is None:
        raise _invalid("a rule is for topics, groups, the cluster, transactional ids, users or delegation tokens")
    if rule.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid("the pattern of a rule is literal (3) or prefixed (4)")
    if rule.permission not in (Permission.ALLOW, Permission.DENY):
        raise _invalid("a rule allows (3) or denies (2)")
    if rule.operation != Operation.ALL and rule.operation not in operations:
        named = ", ".join(sorted(operation.name for operation in operations))
        kind = AclResourceType(rule.resource_type).name.lower()
        raise _invalid(f"operation {rule.operation} does not exist on a {kind}: use ALL, {named}")
    if not rule.resource_name:
        raise _invalid("a rule needs the name of a resource, or * for every one")
    if rule.resource_type == AclResourceType.CLUSTER and rule.resource_name != CLUSTER_NAME:
        raise _invalid(f'the only cluster is "{CLUSTER_NAME}"')
    kind, colon, name = rule.principal.partition(":")
    if not kind or not colon or not name:
        raise _invalid(f'the principal "{rule.principal[:40]}" must look like User:alice')
    if not rule.host:
        raise _invalid("a rule needs the address of a host, or * for every one")
    if any(len(text) > NAME_LENGTH_MAX for text in (rule.resource_name, rule.principal, rule.host)):
        raise _invalid(f"names in a rule have at most {NAME_LENGTH_MAX} characters")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)

"""Access rules (ACLs) of the cluster: list, add, remove, and what they decide."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.client import Admin
from headrace.core.access.acls import WILDCARD, AccessRule, PatternType, Permission, RuleFilter
from headrace.core.access.rule_text import rule_text
from headrace.manager.limits import ACCESS_RULES_PER_REQUEST_MAX
from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem, refusal
from headrace.manager.responses import respond
from headrace.model.access import AclResourceType
from headrace.model.errors import ErrorCode
from headrace.operations.access_rules import ANYTHING, OPERATIONS, decide

router = APIRouter(prefix="/v1/acls", tags=["access"])
OperationName = Literal[
    "all", "read", "write", "create", "delete", "alter", "describe", "cluster-action", "describe-configs",
    "alter-configs", "idempotent-write", "create-tokens", "describe-tokens", "two-phase-commit",
]  # fmt: skip
ResourceName = Literal["topic", "group", "cluster", "transactional-id", "delegation-token", "user"]
RESOURCES: dict[str, AclResourceType] = {
    kind.name.lower().replace("_", "-"): kind for kind in AclResourceType if kind is not AclResourceType.ANY
}
PATTERNS = {"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED, "match": PatternType.MATCH}
PERMISSIONS = {"allow": Permission.ALLOW, "deny": Permission.DENY}
Principal = Annotated[str, Query(max_length=1_000, examples=["User:alice"])]


class Rule(BaseModel):
    """A rule allows or denies an operation on a resource to a principal."""

    model_config = ConfigDict(extra="forbid")

    principal: str = Field(min_length=1, max_length=1_000, examples=["User:alice"])
    host: str = Field(WILDCARD, min_length=1, max_length=255, description="Address of the client, `*` for all.")
    permission: Literal["allow", "deny"] = "allow"
    operation: OperationName
    resource: ResourceName
    name: str = Field(min_length=1, max_length=1_000, description="`*` for all; of the cluster `kafka-cluster`.")
    pattern: Literal["literal", "prefixed"] = "literal"


class RulesToAdd(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rules: list[Rule] = Field(min_length=1, max_length=ACCESS_RULES_PER_REQUEST_MAX)


@dataclass(frozen=True, slots=True)
class RuleView:
    principal: str
    host: str
    permission: str
    operation: str
    resource: str
    name: str
    pattern: str


@dataclass(frozen=True, slots=True)
class DecisionView:
    allowed: bool
    rule: RuleView | None
    """The rule that decides; null if none matches."""


class RuleSelection(BaseModel):
    """The rules that a request means: those that match everything that is given."""

    model_config = ConfigDict(extra="forbid")

    principal: str | None = Field(None, max_length=1_000)
    host: str | None = Field(None, max_length=255)
    permission: Literal["allow", "deny"] | None = None
    operation: OperationName | None = None
    resource: ResourceName | None = None
    name: str | None = Field(None, max_length=1_000)
    pattern: Literal["literal", "prefixed", "match"] | None = Field(
        None, description="`match`: every rule that counts for `name`, also by its prefix or for all names."
    )


class RulesToRemove(RuleSelection):
    dry_run: bool = Field(False, description="List the rules without removing them.")


@router.get("", response_model=list[RuleView], summary="List the access rules")
async def list_rules(request: Request, parts: Parts, wanted: Annotated[RuleSelection, Query()]) -> Response:
    """501 if the brokers have no authorizer: then every client that gets in may do everything."""
    found = await parts.cluster.run(lambda admin: admin.access_rules(_filter(wanted)))
    return respond(request, [_view(rule) for rule in sorted(found)])


@router.post("", response_model=list[RuleView], status_code=201, summary="Add access rules")
async def add(request: Request, parts: Parts, wanted: RulesToAdd) -> Response:
    """A rule that is there already is not added again. Rules count at once, also for open connections."""
    rules = [_rule(each) for each in wanted.rules]

    def added(admin: Admin) -> None:
        for rule, outcome in admin.create_access_rules(rules).items():
            if outcome.error != ErrorCode.NONE:
                raise refusal(f'cannot add the rule for "{rule.principal}"', rule.principal, outcome)

    await parts.cluster.run(added)
    return respond(request, [_view(rule) for rule in rules], status=201)


@router.delete("", response_model=list[RuleView], summary="Remove access rules")
async def remove(request: Request, parts: Parts, wanted: Annotated[RulesToRemove, Query()]) -> Response:
    """Remove the rules that match all parameters, of which at least one is needed, and return them."""
    if not wanted.model_dump(exclude={"dry_run"}, exclude_none=True):
        raise ApiProblem(400, "this would remove all rules: name a principal, a resource or another member of a rule")
    chosen = _filter(wanted)
    if wanted.dry_run:
        found = await parts.cluster.run(lambda admin: admin.access_rules(chosen))
    else:
        found = await parts.cluster.run(lambda admin: admin.delete_access_rules(chosen))
    return respond(request, [_view(rule) for rule in sorted(found)])


@router.get("/decision", response_model=DecisionView, summary="What the access rules decide")
async def decision(
    request: Request,
    parts: Parts,
    principal: Principal,
    operation: OperationName,
    resource: ResourceName,
    name: Annotated[str, Query(min_length=1, max_length=1_000)],
    host: Annotated[str, Query(max_length=255, description="Address of the client.")] = "127.0.0.1",
) -> Response:
    """The super users and `allow.everyone.if.no.acl.found` of the brokers are not considered."""
    found = await parts.cluster.run(
        lambda admin: decide(
            admin, principal=principal, host=host, operation=OPERATIONS[operation], kind=RESOURCES[resource], name=name
        )
    )
    return respond(request, DecisionView(found.allowed, None if found.rule is None else _view(found.rule)))


def _filter(wanted: RuleSelection) -> RuleFilter:
    return RuleFilter(
        RESOURCES[wanted.resource] if wanted.resource else ANYTHING.resource_type,
        wanted.name,
        PATTERNS[wanted.pattern] if wanted.pattern else ANYTHING.pattern_type,
        wanted.principal,
        wanted.host,
        OPERATIONS[wanted.operation] if wanted.operation else ANYTHING.operation,
        PERMISSIONS[wanted.permission] if wanted.permission else ANYTHING.permission,
    )


def _rule(wanted: Rule) -> AccessRule:
    return AccessRule(
        RESOURCES[wanted.resource],
        wanted.name,
        PATTERNS[wanted.pattern],
        wanted.principal,
        wanted.host,
        OPERATIONS[wanted.operation],
        PERMISSIONS[wanted.permission],
    )


def _view(rule: AccessRule) -> RuleView:
    return RuleView(**rule_text(rule)._asdict())

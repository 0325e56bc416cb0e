"""Users, access rules and quotas of the cluster: 501 with the reason where this cluster has none."""

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem
from headrace.manager.responses import respond

router = APIRouter(prefix="/v1", tags=["users"])
NO_USERS = "this cluster stores no users, so every client that reaches a broker may do everything: keep its listeners "
NO_USERS += "on loopback or in a private network"


@dataclass(frozen=True, slots=True)
class CredentialView:
    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class UserView:
    name: str
    credentials: list[CredentialView]


@router.get("/users", response_model=list[UserView], summary="List the users of the cluster")
async def list_users(request: Request, parts: Parts) -> Response:
    """501 while the cluster stores no users."""
    found = await parts.cluster.run(lambda admin: admin.scram_users())
    shown = [
        UserView(name, [CredentialView(each.mechanism.name, each.iterations) for each in credentials])
        for name, credentials in found.items()
    ]
    return respond(request, shown)


@router.get("/acls", summary="List the access rules of the cluster", response_model=list[str])
async def list_acls() -> Response:
    """501: this version has no authorizer."""
    raise ApiProblem(501, f"there are no access rules: {NO_USERS}")


@router.get("/quotas", summary="List the quotas of the cluster", response_model=list[str])
async def list_quotas() -> Response:
    """501: this version has no quotas."""
    raise ApiProblem(501, f"there are no quotas by user: {NO_USERS}")

"""Users of the cluster, which log in at the brokers by SCRAM."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.client import Admin, NewScramUser, ScramMechanism
from headrace.client.types import Outcome, ScramCredential
from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem, refusal
from headrace.manager.responses import respond
from headrace.model.errors import ErrorCode

router = APIRouter(prefix="/v1", tags=["access"])
MECHANISMS = {mechanism.label: mechanism for mechanism in ScramMechanism}
Name = Annotated[str, Path(max_length=1_000)]


@dataclass(frozen=True, slots=True)
class CredentialView:
    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class UserView:
    name: str
    credentials: list[CredentialView]


class UserToSet(BaseModel):
    model_config = ConfigDict(extra="forbid")

    password: str = Field(min_length=1, max_length=1_024)
    mechanisms: list[Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]] = Field(
        default=["SCRAM-SHA-256", "SCRAM-SHA-512"], min_length=1, max_length=2
    )
    iterations: int = Field(4_096, ge=4_096, le=16_384)


@router.get("/users", response_model=list[UserView], summary="List the users of the cluster")
async def list_users(request: Request, parts: Parts) -> Response:
    """Those that log in at the brokers. The users of the manager are at `/v1/access/users`."""
    found = await parts.cluster.run(lambda admin: admin.scram_users())
    return respond(request, [_view(name, credentials) for name, credentials in sorted(found.items())])


@router.put("/users/{user}", response_model=UserView, summary="Add a user of the cluster, or change its password")
async def put(request: Request, parts: Parts, user: Name, wanted: UserToSet) -> Response:
    """The cluster stores salted keys that verify the password. Connections that are open stay so."""
    added = [
        NewScramUser(name=user, password=wanted.password, mechanism=MECHANISMS[each], iterations=wanted.iterations)
        for each in dict.fromkeys(wanted.mechanisms)
    ]

    def changed(admin: Admin) -> tuple[ScramCredential, ...]:
        _raise_refusals("cannot set", admin.alter_scram_users(added))
        return admin.scram_users([user]).get(user, ())

    return respond(request, _view(user, await parts.cluster.run(changed)))


@router.delete("/users/{user}", status_code=204, summary="Remove a user of the cluster")
async def remove(parts: Parts, user: Name) -> Response:
    """Its open connections last until they have to authenticate again (`connections.max.reauth.ms`)."""

    def removed(admin: Admin) -> None:
        held = admin.scram_users([user]).get(user, ())
        if not held:
            raise ApiProblem(404, f'there is no user "{user}" in the cluster: GET /v1/users lists all')
        _raise_refusals("cannot remove", admin.alter_scram_users(deleted=[(user, each.mechanism) for each in held]))

    await parts.cluster.run(removed)
    return Response(status_code=204)


def _raise_refusals(doing: str, outcomes: dict[str, Outcome]) -> None:
    for name, outcome in outcomes.items():
        if outcome.error != ErrorCode.NONE:
            raise refusal(f'{doing} user "{name}"', name, outcome)


def _view(name: str, credentials: tuple[ScramCredential, ...]) -> UserView:
    return UserView(name, [CredentialView(each.mechanism.label, each.iterations) for each in credentials])

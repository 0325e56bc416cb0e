"""Users of the manager and their tokens: list, add, change and remove."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headrace.manager.access.callers import CurrentCaller
from headrace.manager.access.passwords import LENGTH_MAX
from headrace.manager.access.roles import UserRole
from headrace.manager.access.users import (
    KnownToken,
    KnownUser,
    add_user,
    create_token,
    delete_token,
    end_sessions,
    listed_tokens,
    listed_users,
    remove_user,
    set_password,
    set_role,
)
from headrace.manager.catalog.engine import now_ms
from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem
from headrace.manager.responses import respond

router = APIRouter(prefix="/v1/access", tags=["users"])
DAYS_MAX = 3_650
RoleName = Literal["viewer", "editor", "admin"]


class UserToAdd(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=64, examples=["ada"])
    role: RoleName
    password: str = Field(max_length=LENGTH_MAX)


class UserChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: RoleName | None = None
    password: str | None = Field(None, max_length=LENGTH_MAX)


class TokenToCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: str = Field("", max_length=200, examples=["the nightly export"])
    days: int | None = Field(None, ge=1, le=DAYS_MAX, description="Days until it expires; never without it.")


@dataclass(frozen=True, slots=True)
class CreatedToken:
    id: str
    token: str
    """The secret; it is not shown again."""


@router.get("/users", response_model=list[KnownUser], summary="List the users of the manager")
async def list_users(request: Request, parts: Parts) -> Response:
    return respond(request, await parts.catalog.read(listed_users))


@router.post("/users", response_model=KnownUser, status_code=201, summary="Add a user of the manager")
async def add(request: Request, parts: Parts, caller: CurrentCaller, wanted: UserToAdd) -> Response:
    """The first user is added on the manager's machine, by `headrace manager users add`."""
    if caller.kind == "machine":
        raise ApiProblem(409, "add the first user with headrace manager users add, on the manager's machine")
    password = await parts.logins.hashed(wanted.password)

    def added(connection: Connection) -> KnownUser:
        add_user(connection, wanted.name, wanted.role, password, now=now_ms(connection))
        return _one(connection, wanted.name)

    return respond(request, await parts.catalog.change(added), status=201)


@router.patch("/users/{user}", response_model=KnownUser, summary="Change the role or the password of a user")
async def alter(request: Request, parts: Parts, user: str, change: UserChange) -> Response:
    """A new password ends the sessions of the user."""
    if change.role is None and change.password is None:
        raise ApiProblem(400, 'nothing to change: give "role" or "password"')
    password = None if change.password is None else await parts.logins.hashed(change.password)

    def altered(connection: Connection) -> KnownUser:
        if change.role is not None:
            set_role(connection, user, change.role)
        if password is not None:
            set_password(connection, user, password)
        return _one(connection, user)

    return respond(request, await parts.catalog.change(altered))


@router.delete("/users/{user}", status_code=204, summary="Remove a user with all sessions and tokens")
async def remove(parts: Parts, user: str) -> Response:
    await parts.catalog.change(lambda connection: remove_user(connection, user))
    return Response(status_code=204)


@router.delete("/users/{user}/sessions", status_code=204, summary="End all sessions of a user")
async def end(parts: Parts, user: str) -> Response:
    """Also of a user of the identity provider, whose name begins with `oidc:`. Tokens stay."""
    await parts.catalog.write(lambda connection: end_sessions(connection, user))
    return Response(status_code=204)


def _one(connection: Connection, name: str) -> KnownUser:
    return next(user for user in listed_users(connection) if user.name == name)


@router.get("/tokens", response_model=list[KnownToken], summary="List tokens")
async def list_tokens(
    request: Request,
    parts: Parts,
    caller: CurrentCaller,
    everyone: Annotated[bool, Query(description="Tokens of all users; for admins.")] = False,
) -> Response:
    if everyone and caller.role < UserRole.ADMIN:
        raise ApiProblem(403, "only an admin sees the tokens of other users")
    user = None if everyone else caller.name
    return respond(request, await parts.catalog.read(lambda connection: listed_tokens(connection, user)))


@router.post("/tokens", response_model=CreatedToken, status_code=201, summary="Create a token for yourself")
async def create(request: Request, parts: Parts, caller: CurrentCaller, wanted: TokenToCreate) -> Response:
    """A script sends the token as `Authorization: Bearer TOKEN`; it has the role of its user."""
    if caller.kind != "session":
        raise ApiProblem(403, "a token is created by a session: log in first")

    def created(connection: Connection) -> CreatedToken:
        now = now_ms(connection)
        return CreatedToken(*create_token(connection, caller.name, wanted.description, wanted.days, now=now))

    headers = {"cache-control": "no-store"}
    return respond(request, await parts.catalog.change(created), status=201, headers=headers)


@router.delete("/tokens/{token}", status_code=204, summary="Delete a token")
async def delete(parts: Parts, caller: CurrentCaller, token: str) -> Response:
    """A user deletes own tokens, an admin those of everyone."""
    user = None if caller.role >= UserRole.ADMIN else caller.name
    await parts.catalog.change(lambda connection: delete_token(connection, token, user=user))
    return Response(status_code=204)

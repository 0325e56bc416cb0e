"""Sessions: log in with a password, the user of the request, log out; and the page with the form."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.manager.access.callers import SESSION_COOKIE, CurrentCaller, session_of
from headrace.manager.access.users import csrf_token, digest_of, end_session
from headrace.manager.limits import SESSION_SECONDS_MAX
from headrace.manager.pages import HTML, page
from headrace.manager.parts import ManagerParts, Parts
from headrace.manager.problems import ApiProblem
from headrace.manager.responses import respond

router = APIRouter(tags=["users"])


class LoginWanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user: str = Field(max_length=64)
    password: str = Field(max_length=1_024)


@dataclass(frozen=True, slots=True)
class SessionView:
    user: str
    """Empty for the user of this machine while the manager has no users."""
    role: str
    csrf_token: str | None
    """The value of X-CSRF-Token for changes by this session; null without one."""


@router.get("/v1/session", response_model=SessionView, summary="The user of this request")
async def show(request: Request, caller: CurrentCaller) -> Response:
    token = csrf_token(session_of(request.scope["state"]["headers"])) if caller.kind == "session" else None
    return respond(request, SessionView(caller.name, caller.role.label, token), headers={"cache-control": "no-store"})


@router.post("/v1/session", status_code=204, summary="Log in with a password")
async def log_in(request: Request, parts: Parts, wanted: LoginWanted) -> Response:
    """204 with the session as a cookie; `GET /v1/session` then returns the token that changes need."""
    response = Response(status_code=204)
    set_session(request, response, await _secret(request, parts, wanted.user, wanted.password))
    return response


@router.delete("/v1/session", status_code=204, summary="Log out")
async def log_out(request: Request, parts: Parts, caller: CurrentCaller) -> Response:
    if caller.kind != "session":
        raise ApiProblem(409, "this request has no session: a token is deleted by DELETE /v1/access/tokens/ID")
    await parts.catalog.write(lambda connection: end_session(connection, caller.credential))
    parts.callers.forget(caller.credential)
    response = Response(status_code=204)
    response.delete_cookie(SESSION_COOKIE, path=home_of(request), httponly=True, samesite="lax")
    return response


@router.get("/login", include_in_schema=False)
async def form(request: Request, parts: Parts) -> Response:
    return _form(request, parts, "")


@router.post("/login", include_in_schema=False)
async def submit(
    request: Request, parts: Parts, user: Annotated[str, Form()] = "", password: Annotated[str, Form()] = ""
) -> Response:
    try:
        secret = await _secret(request, parts, user, password)
    except ApiProblem as problem:
        if problem.status not in (401, 429):
            raise
        return _form(request, parts, problem.detail, status=problem.status)
    response = Response(None, 303, {"location": home_of(request)})
    set_session(request, response, secret)
    return response


def _form(request: Request, parts: ManagerParts, message: str, *, status: int = 200) -> Response:
    has_provider = parts.identity_provider is not None
    content = page("login.html", root=request.scope.get("root_path", ""), message=message, has_provider=has_provider)
    return Response(content, status, {"cache-control": "no-store"}, HTML)


async def _secret(request: Request, parts: ManagerParts, user: str, password: str) -> str:
    request.scope["state"]["audited_user"] = user[:64]
    earlier = session_of(request.scope["state"]["headers"])
    address = (request.scope.get("client") or ("",))[0]
    secret = await parts.logins.log_in(user, password, address=address, earlier=earlier)
    parts.callers.forget(digest_of(earlier))
    return secret


def set_session(request: Request, response: Response, secret: str) -> None:
    response.set_cookie(
        SESSION_COOKIE,
        secret,
        max_age=SESSION_SECONDS_MAX,
        path=home_of(request),
        secure=request.scope["scheme"] == "https",
        httponly=True,
        samesite="lax",
    )


def home_of(request: Request) -> str:
    """Return the path of the manager, which its cookies are for."""
    return request.scope.get("root_path", "") or "/"

"""Login at an identity provider: the way there, and the return with a code."""

from hmac import compare_digest
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from headrace.manager.access.identity_provider import IdentityProvider
from headrace.manager.access.users import begin_session
from headrace.manager.api.sessions import home_of, set_session
from headrace.manager.catalog.engine import now_ms
from headrace.manager.limits import IDENTITY_LOGIN_SECONDS_MAX
from headrace.manager.parts import ManagerParts, Parts
from headrace.manager.problems import ApiProblem

router = APIRouter(prefix="/login/oidc", include_in_schema=False)
LOGIN_COOKIE = "headrace_login"
LENGTH_MAX = 4_096


@router.get("")
async def begin(request: Request, parts: Parts) -> Response:
    begun = await _provider(parts).begin(_redirect_uri(request, parts))
    response = Response(None, 303, {"location": begun.url, "cache-control": "no-store"})
    response.set_cookie(
        LOGIN_COOKIE,
        begun.state,
        max_age=IDENTITY_LOGIN_SECONDS_MAX,
        path=_path(request),
        secure=request.scope["scheme"] == "https",
        httponly=True,
        samesite="lax",  # The return is a request that the provider's site starts.
    )
    return response


@router.get("/callback")
async def finish(
    request: Request,
    parts: Parts,
    state: Annotated[str, Query(max_length=LENGTH_MAX)] = "",
    code: Annotated[str, Query(max_length=LENGTH_MAX)] = "",
    error: Annotated[str, Query(max_length=LENGTH_MAX)] = "",
) -> Response:
    provider = _provider(parts)
    kept = request.cookies.get(LOGIN_COOKIE, "")
    if not state or not compare_digest(state.encode(), kept.encode()):
        raise ApiProblem(401, "this login was not begun in this browser: log in again")
    if error or not code:
        raise ApiProblem(401, "the identity provider has refused the login: log in again")
    user = await provider.finish(state=state, code=code, redirect_uri=_redirect_uri(request, parts))
    request.scope["state"]["audited_user"] = user.name
    secret = await parts.catalog.write(
        lambda connection: begin_session(connection, user.name, now=now_ms(connection), role=user.role)
    )
    response = Response(None, 303, {"location": home_of(request), "cache-control": "no-store"})
    response.delete_cookie(LOGIN_COOKIE, path=_path(request), httponly=True, samesite="lax")
    set_session(request, response, secret)
    return response


def _provider(parts: ManagerParts) -> IdentityProvider:
    if parts.identity_provider is None:
        raise ApiProblem(404, "this manager has no identity provider: log in at /login with a password")
    return parts.identity_provider


def _redirect_uri(request: Request, parts: ManagerParts) -> str:
    host = request.scope["state"]["headers"][b"host"].decode("latin-1")
    own = parts.settings.url or f"{request.scope['scheme']}://{host}{request.scope.get('root_path', '')}"
    return f"{own}/login/oidc/callback"


def _path(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/login/oidc"

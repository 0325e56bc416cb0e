"""The HTTP application: its routes, the answers to errors, and the life of its connections to the cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from headrace import __version__
from headrace.client.errors import ClientError
from headrace.manager.access.boundary import Boundary, host_name
from headrace.manager.access.callers import Callers
from headrace.manager.access.forwarder import Forwarder
from headrace.manager.access.guard import Guard, same_route
from headrace.manager.access.identity_provider import IdentityProvider
from headrace.manager.access.logins import Logins
from headrace.manager.access.mask_rules import Masks
from headrace.manager.api import (
    access,
    access_rules,
    audit,
    brokers,
    clients,
    cluster,
    configs,
    connections,
    events,
    groups,
    health,
    history,
    identity_logins,
    managers,
    people,
    quotas,
    records,
    sessions,
    streams,
    subscriptions,
    topics,
    transactions,
    users,
)
from headrace.manager.api import masks as mask_routes
from headrace.manager.asgi import Application
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.shared_keys import FORWARDING, shared_key
from headrace.manager.change_events import ChangeEvents
from headrace.manager.cluster_calls import ClusterCalls
from headrace.manager.connection_rates import ClientSamples
from headrace.manager.feeds import Feeds
from headrace.manager.gate import Gate
from headrace.manager.history_recorder import HistoryRecorder
from headrace.manager.keyed_writes import KeyedWrites
from headrace.manager.metrics import ManagerMetrics
from headrace.manager.overview import Overview
from headrace.manager.parts import ManagerParts
from headrace.manager.problems import MEDIA_TYPE, ApiProblem, problem_of, unexpected
from headrace.manager.readers import Readers
from headrace.manager.registrations import Registrations
from headrace.manager.responses import PROBLEM_SCHEMA, as_json
from headrace.manager.settings import ManagerSettings
from headrace.manager.writers import Writers
from headrace.operations.errors import OperationError

CLIENT_GONE = 499
"""Status in the log and metrics of a request whose client closed the connection."""
OPENAPI_PATH = "/v1/openapi.json"
ROUTERS = (
    *(health, people, sessions, identity_logins, access, mask_routes, audit, history, managers),
    *(
        topics,
        records,
        streams,
        subscriptions,
        events,
        configs,
        connections,
        clients,
        brokers,
        cluster,
        groups,
        transactions,
        users,
        access_rules,
        quotas,
    ),
)


def create_app(settings: ManagerSettings, catalog: Catalog) -> tuple[Application, ManagerParts]:
    """Return the application and its parts; it connects to the cluster when the first request needs it."""
    metrics = ManagerMetrics()
    key = catalog.run_here(lambda connection: shared_key(connection, FORWARDING), writes=True).hex().encode()
    cluster_calls = ClusterCalls(settings.cluster)
    writers, readers = Writers(settings.cluster, metrics), Readers(settings.cluster)
    keyed = KeyedWrites(settings.cluster, cluster=cluster_calls, readers=readers, writers=writers)
    provider = None if settings.provider is None else IdentityProvider(settings.provider, catalog)
    callers = Callers(catalog, cluster_calls, needs_users=not settings.is_local or provider is not None)
    masks = Masks(catalog)
    parts = ManagerParts(
        settings=settings, metrics=metrics, cluster=cluster_calls, catalog=catalog, callers=callers,
        logins=Logins(catalog), masks=masks, identity_provider=provider,
        writers=writers, readers=readers, keyed=keyed, feeds=Feeds(readers),
        overview=Overview(cluster_calls), clients=ClientSamples(cluster_calls),
        changes=ChangeEvents(settings.cluster), registrations=Registrations(catalog, cluster_calls),
    )  # fmt: skip

    recorder = HistoryRecorder(catalog, cluster_calls)

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        recorder.start()
        parts.registrations.start()
        yield
        await recorder.close()
        await parts.registrations.close()
        await guard.close()
        await callers.close()
        await parts.feeds.close()
        await parts.changes.close()
        await parts.keyed.close()
        await parts.writers.close()
        await catalog.close()
        parts.cluster.close()

    app = FastAPI(
        title="Headrace manager",
        version=__version__,
        description="Administration, records and consumer groups of a cluster over HTTP.",
        docs_url=None,
        redoc_url=None,
        openapi_url=OPENAPI_PATH,
        root_path=settings.root_path,
        lifespan=life,
        redirect_slashes=False,
        dependencies=[Depends(same_route)],
    )
    app.state.parts = parts
    for module in ROUTERS:
        app.include_router(module.router)
    _answer_errors(app)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    guard = Guard(app, callers=callers, masks=masks, catalog=catalog, forwarder=Forwarder(settings.tls_ca), key=key)
    name = host_name(settings.url.partition("://")[2]) if settings.url else None
    boundary = Boundary(settings.is_local, frozenset((name,) if name else ()), settings.proxies, key)
    return Gate(guard, metrics, boundary, access_log=settings.access_log), parts


def _answer_errors(app: FastAPI) -> None:
    async def expected(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        assert problem is not None, error
        return _answer(request, problem)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _answer(request, _invalid(error))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        response = _answer(request, _unrouted(request, error))
        response.headers.update(error.headers or {})
        return response

    async def failed(request: Request, error: Exception) -> Response:
        return _answer(request, unexpected(request.state.request_id))

    async def gone(request: Request, error: Exception) -> Response:
        return Response(status_code=CLIENT_GONE)

    app.add_exception_handler(Exception, failed)
    app.add_exception_handler(ClientDisconnect, gone)
    for kind in (ApiProblem, ClientError, OperationError):
        app.add_exception_handler(kind, expected)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)


def _answer(request: Request, problem: ApiProblem) -> Response:
    content = as_json(problem.body(request.state.request_id))
    return Response(content, problem.status, problem.headers(), MEDIA_TYPE)


def _invalid(error: RequestValidationError) -> ApiProblem:
    """Return what is wrong with parameters or the body, each with its place."""
    found = [{"place": ".".join(map(str, each["loc"])), "message": str(each["msg"])} for each in error.errors()]
    first = found[0]
    text = f"{first['place']}: {first['message']}; GET {OPENAPI_PATH} describes every request"
    return ApiProblem(400, text, extra={"errors": found})


def _unrouted(request: Request, error: HTTPException) -> ApiProblem:
    match error.status_code:
        case 404:
            return ApiProblem(404, f"there is nothing at {request.url.path}; GET {OPENAPI_PATH} lists all paths")
        case 405:
            allowed = (error.headers or {}).get("Allow", "another method")
            return ApiProblem(405, f"{request.method} is not supported at {request.url.path}: use {allowed}")
        case 400:
            return ApiProblem(400, "the body cannot be read: send JSON with the header Content-Type: application/json")
        case status:
            return ApiProblem(status, str(error.detail))


def _document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document. Every response that is not a success has the same form."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes,
            servers=[{"url": app.root_path}] if app.root_path else None,
        )  # fmt: skip
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        schemas["Problem"] = PROBLEM_SCHEMA
        content: dict[str, Any] = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                operation["responses"]["default"] = {
                    "description": "The request failed.",
                    "content": content,
                }
        app.openapi_schema = document
    return app.openapi_schema

"""Pages for people: the overview of the cluster, and the reference of the HTTP API."""

from typing import Any

from fastapi import APIRouter, Request, Response

from headrace.manager.limits import OVERVIEW_RATES_KEPT, OVERVIEW_ROWS_MAX, OVERVIEW_SAMPLE_SECONDS
from headrace.manager.overview import OverviewState
from headrace.manager.pages import ASSETS, HTML, asset, diagram_points, page
from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem

router = APIRouter(include_in_schema=False)
NOT_STORED = {"cache-control": "no-store"}


@router.get("/")
async def overview(request: Request, parts: Parts) -> Response:
    return _overview_page("overview.html", request, await parts.overview.state())


@router.get("/overview")
async def overview_state(request: Request, parts: Parts) -> Response:
    """The part of the overview that changes, which the page loads every two seconds."""
    return _overview_page("overview_state.html", request, await parts.overview.state())


def _overview_page(template: str, request: Request, state: OverviewState) -> Response:
    line, area = diagram_points(state.written, OVERVIEW_RATES_KEPT) if len(state.written) > 1 else ("", "")
    content = page(
        template,
        here="overview",
        root=request.scope.get("root_path", ""),
        state=state,
        interval_ms=OVERVIEW_SAMPLE_SECONDS * 1_000,
        rows_max=OVERVIEW_ROWS_MAX,
        kept=OVERVIEW_RATES_KEPT,
        minutes=OVERVIEW_RATES_KEPT * OVERVIEW_SAMPLE_SECONDS // 60,
        line=line,
        area=area,
    )
    return Response(content, media_type=HTML, headers=NOT_STORED)


@router.get("/reference")
async def reference(request: Request) -> Response:
    document = request.app.openapi()
    values = {"document": document, "groups": by_tag(document), "root": request.scope.get("root_path", "")}
    return Response(page("reference.html", here="reference", **values), media_type=HTML)


@router.get("/assets/{name}")
async def loaded_file(request: Request, name: str) -> Response:
    if name not in ASSETS:
        raise ApiProblem(404, f"there is nothing at {request.url.path}")
    return Response(asset(name), media_type=ASSETS[name], headers={"cache-control": "no-cache"})


def by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Return path, method and operation of every request, by the tag of the document."""
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            found.setdefault(operation["tags"][0], []).append((path, method, operation))
    return found

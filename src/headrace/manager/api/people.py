"""Pages for people: the reference of the HTTP API."""

from typing import Any

from fastapi import APIRouter, Request, Response

from headrace.manager.pages import HTML, page, style

router = APIRouter(include_in_schema=False)


@router.get("/")
async def front(request: Request) -> Response:
    return Response(None, 307, {"location": f"{request.scope.get('root_path', '')}/reference"})


@router.get("/reference")
async def reference(request: Request) -> Response:
    document = request.app.openapi()
    values = {"document": document, "groups": by_tag(document), "root": request.scope.get("root_path", "")}
    return Response(page("reference.html", **values), media_type=HTML)


@router.get("/assets/style.css")
async def stylesheet() -> Response:
    return Response(style(), media_type="text/css; charset=utf-8")


def by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Return path, method and operation of every request, by the tag of the document."""
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            found.setdefault(operation["tags"][0], []).append((path, method, operation))
    return found

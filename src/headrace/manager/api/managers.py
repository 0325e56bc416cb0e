"""The managers of the cluster: their addresses, which of them are alive, and which one makes changes."""

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from headrace.manager.catalog.lease import listed
from headrace.manager.parts import Parts
from headrace.manager.responses import respond

router = APIRouter(prefix="/v1/managers", tags=["manager"])


@dataclass(frozen=True, slots=True)
class ManagerView:
    id: str
    url: str
    version: str
    started_ms: int
    seen_ms: int
    """The last heartbeat."""
    is_alive: bool
    holds_lease: bool
    """It makes the changes of the catalog; the others forward them to it."""


@router.get("", response_model=list[ManagerView], summary="List the managers")
async def list_managers(request: Request, parts: Parts) -> Response:
    """Managers that share the catalog. One that was killed is listed for a minute."""
    found = await parts.catalog.read(listed)
    return respond(request, [ManagerView(**each._asdict()) for each in found])

"""Audit records: who changed what."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from headrace.manager.access.audit import newest_records
from headrace.manager.limits import PAGE_ITEMS_MAX
from headrace.manager.parts import Parts
from headrace.manager.responses import respond

router = APIRouter(prefix="/v1/audit", tags=["users"])


@dataclass(frozen=True, slots=True)
class AuditView:
    id: int
    time_ms: int
    user: str
    """Empty for the user of this machine while the manager has no users."""
    address: str
    request_id: str
    action: str
    resource: str
    status: int
    detail: str
    """The body of the request, as far as it has no secrets."""


@router.get("", response_model=list[AuditView], summary="List changes, the newest first")
async def list_changes(
    request: Request,
    parts: Parts,
    before: Annotated[int | None, Query(ge=0, le=2**63 - 1, description="Only records with a lower id.")] = None,
    user: Annotated[str | None, Query(max_length=300)] = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_ITEMS_MAX)] = 100,
) -> Response:
    found = await parts.catalog.read(partial(newest_records, before=before, user=user, limit=limit))
    return respond(request, [AuditView(*each) for each in found])

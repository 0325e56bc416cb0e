"""History: records written to a topic and lag of a group, by minute."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from headrace.manager.catalog.history import MINUTE_MS, MINUTES_PER_DAY, lag_history, written_minutes
from headrace.manager.limits import HISTORY_DAYS
from headrace.manager.parts import Parts
from headrace.manager.responses import respond

router = APIRouter(prefix="/v1/history", tags=["history"])
Minutes = Annotated[int, Query(ge=1, le=HISTORY_DAYS * MINUTES_PER_DAY, description="Only the last minutes.")]


@dataclass(frozen=True, slots=True)
class WrittenView:
    time_ms: int
    """The start of the minute."""
    records: int


@dataclass(frozen=True, slots=True)
class LagHistoryView:
    time_ms: int
    topic: str
    lag: int


@router.get("/topics/{topic}", response_model=list[WrittenView], summary="Records written to a topic, by minute")
async def written(request: Request, parts: Parts, topic: str, minutes: Minutes = 60) -> Response:
    """Minutes without records are left out. Kept for seven days."""
    found = await parts.catalog.read(lambda connection: written_minutes(connection, topic, minutes))
    return respond(request, [WrittenView(each.minute * MINUTE_MS, each.records) for each in found])


@router.get("/groups/{group}", response_model=list[LagHistoryView], summary="Lag of a group, by minute and topic")
async def lag(request: Request, parts: Parts, group: str, minutes: Minutes = 60) -> Response:
    """Kept for seven days."""
    found = await parts.catalog.read(lambda connection: lag_history(connection, group, minutes))
    return respond(request, [LagHistoryView(each.minute * MINUTE_MS, each.topic, each.lag) for each in found])

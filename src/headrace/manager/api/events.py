"""Push: changes of the cluster as Server-Sent Events."""

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response

from headrace.manager.event_streams import MEDIA_TYPE, EventStreamResponse
from headrace.manager.limits import EVENT_TOPICS_MAX
from headrace.manager.parts import Parts

router = APIRouter(prefix="/v1/events", tags=["cluster"])
INT64_MAX = 2**63 - 1
Kind = Literal["topic", "partition", "configs", "broker", "group"]


@router.get("", summary="Stream changes of the cluster as they come", response_class=Response,
            responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}})  # fmt: skip
async def events(
    parts: Parts,
    topic: Annotated[
        list[str] | None,
        Query(max_length=EVENT_TOPICS_MAX, description="Of changes of topics, only those of these topics."),
    ] = None,
    kind: Annotated[list[Kind] | None, Query(max_length=5, description="Only changes of these kinds.")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=INT64_MAX, description="Begin after this version: the id of an event.")
    ] = None,
    last_event_id: Annotated[
        int | None, Header(ge=0, le=INT64_MAX, description="The id of the last event received.")
    ] = None,
) -> Response:
    """Server-Sent Events: topic, partition (leader, in-sync replicas), configs, broker and group.

    A stream starts with an event `begin`. The id of an event is the version of the metadata; a client that connects
    again with it as Last-Event-ID misses nothing. An event `reset` says that events were left out: list all again.
    """
    version = after if last_event_id is None else last_event_id
    return EventStreamResponse(parts.changes.stream(kinds=kind or (), topics=topic or (), after_version=version))

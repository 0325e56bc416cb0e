"""Push: the records of a topic as Server-Sent Events."""

from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response

from headrace.manager.access.callers import CurrentCaller
from headrace.manager.access.mask_rules import Masking
from headrace.manager.api.records import parse_positions, parse_predicate, parse_start_time
from headrace.manager.api.topics import existing
from headrace.manager.event_streams import MEDIA_TYPE, POSITIONS, EventStreamResponse, RecordStream, record_events
from headrace.manager.limits import POSITIONS_LENGTH_MAX, STREAM_PARTITIONS_MAX
from headrace.manager.parts import ManagerParts, Parts
from headrace.manager.problems import ApiProblem
from headrace.manager.reads import EARLIEST, LATEST, ReadPlan
from headrace.manager.record_views import Shown, record_view

router = APIRouter(prefix="/v1/topics/{topic}/stream", tags=["records"])


@router.get("", summary="Stream records as they come", response_class=Response,
            responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}})  # fmt: skip
async def stream(
    parts: Parts,
    caller: CurrentCaller,
    topic: str,
    partition: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="One partition alone.")] = None,
    time: Annotated[str | None, Query(max_length=40, description="Start at this time, such as 15m (ago).")] = None,
    start: Annotated[Literal["earliest", "latest"], Query(alias="from")] = "latest",
    positions: Annotated[
        str | None,
        Query(max_length=POSITIONS_LENGTH_MAX, pattern=POSITIONS, description="As a response of GET records had them."),
    ] = None,
    filter: Annotated[str | None, Query(description="An expression such as value.amount > 100.")] = None,
    shown: Annotated[Shown, Query(alias="as", description="The form of keys and values.")] = "auto",
    last_event_id: Annotated[
        str | None,
        Header(max_length=POSITIONS_LENGTH_MAX, pattern=POSITIONS, description="The id of the last event received."),
    ] = None,
) -> Response:
    """Server-Sent Events of committed records; each has the members of a record of `GET records`.

    The id of an event is the position after it. A client that connects again with it as Last-Event-ID, as EventSource
    does, misses no record and gets none twice, while the records are retained.
    """
    plan = stream_plan(
        topic, masking=await parts.masks.masking(topic, caller), partition=partition,
        start=start, time=time, positions=parse_positions(last_event_id or positions),
        filter=filter, is_resumed=last_event_id is not None,
    )  # fmt: skip
    records = await opened_stream(parts, plan)
    return EventStreamResponse(record_events(records, plan, record_view(shown), parts.metrics))


def stream_plan(
    topic: str,
    *,
    masking: Masking,
    partition: int | None,
    start: str,
    time: str | None,
    positions: Mapping[int, int],
    filter: str | None,
    is_resumed: bool,
) -> ReadPlan:
    """Return the plan of a stream; one that is resumed starts at the nearest positions that exist."""
    return ReadPlan(
        topic=topic,
        masking=masking,
        partition=partition,
        positions=positions,
        time_ms=parse_start_time(time),
        start=EARLIEST if start == "earliest" else LATEST,
        records_max=1,
        wait_ms=1,
        matches=parse_predicate(filter),
        clamp=is_resumed,
    )


async def opened_stream(parts: ManagerParts, plan: ReadPlan) -> RecordStream:
    """Return the stream of a plan, whose topic and partition must exist."""
    topic, partition = plan.topic, plan.partition
    count = len((await parts.cluster.run(lambda admin: existing(admin, topic))).partitions)
    if partition is not None and partition >= count:
        raise ApiProblem(404, f'topic "{topic}" has no partition {partition}: it has {count}, from 0 on')
    if partition is None and count > STREAM_PARTITIONS_MAX:
        raise ApiProblem(
            400, f'topic "{topic}" has {count} partitions: name one with partition, because a stream of a whole topic '
            f"may have {STREAM_PARTITIONS_MAX}"
        )  # fmt: skip
    return RecordStream(plan, count, feeds=parts.feeds, readers=parts.readers)

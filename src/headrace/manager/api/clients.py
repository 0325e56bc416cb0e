"""Registered clients: producers and consumers that keep a delivery mode, and consumers a position."""

from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.client import Admin
from headrace.client.types import EARLIEST, LATEST
from headrace.manager.access.callers import CurrentCaller
from headrace.manager.api.records import (
    BODY,
    DELIVERIES,
    ProducedRecords,
    ReadRecords,
    acknowledgements,
    parse_positions,
    parse_predicate,
    parse_start_time,
    produce_all,
    produce_once,
    read_all,
    read_response,
)
from headrace.manager.api.streams import opened_stream, stream_plan
from headrace.manager.api.topics import existing
from headrace.manager.event_streams import MEDIA_TYPE, POSITIONS, EventStreamResponse, record_events
from headrace.manager.limits import POSITIONS_LENGTH_MAX, READ_WAIT_MS_MAX, RECORDS_PER_REQUEST_MAX
from headrace.manager.parts import ManagerParts, Parts
from headrace.manager.problems import ApiProblem
from headrace.manager.reads import ReadPlan
from headrace.manager.record_bodies import parse_records
from headrace.manager.record_views import Shown, record_view
from headrace.manager.registrations import AT_MOST_ONCE, CONSUMER, EXACTLY_ONCE, PRODUCER, RegisteredClient
from headrace.manager.responses import respond
from headrace.model.ids import TopicPartition

router = APIRouter(prefix="/v1/clients", tags=["clients"])
Id = Annotated[str, Path(max_length=100, description="The id that the registration returned.")]


class ClientToRegister(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["producer", "consumer"]
    name: str = Field(min_length=1, max_length=100, examples=["billing"])
    topic: str = Field(min_length=1, max_length=249)
    partition: int | None = Field(None, ge=0, le=2**31 - 1, description="One partition; the whole topic without it.")
    delivery: Literal["at-most-once", "at-least-once", "exactly-once"] = "at-least-once"
    start: Literal["earliest", "latest"] = Field("earliest", alias="from", description="Of a consumer.")
    time: str | None = Field(None, max_length=40, description="A consumer starts at this time, such as 15m (ago).")


class Acknowledgement(BaseModel):
    model_config = ConfigDict(extra="forbid")

    positions: str = Field(max_length=POSITIONS_LENGTH_MAX, pattern=POSITIONS, examples=["0:120,1:98"])


@dataclass(frozen=True, slots=True)
class ClientView:
    id: str
    """For a consumer also the group that has its position."""
    kind: str
    name: str
    topic: str
    partition: int | None
    delivery: str
    created_ms: int
    seen_ms: int


@router.post("", response_model=ClientView, status_code=201, summary="Register a producer or a consumer")
async def register(request: Request, parts: Parts, caller: CurrentCaller, wanted: ClientToRegister) -> Response:
    """201 with the id. A client that sends neither a request nor a heartbeat for ten minutes is removed."""
    if wanted.kind == CONSUMER and wanted.delivery == EXACTLY_ONCE:
        raise ApiProblem(400, "a consumer has delivery at-most-once or at-least-once: handle repeats by the offset")
    time_ms = parse_start_time(wanted.time)
    at = time_ms if time_ms is not None else EARLIEST if wanted.start == "earliest" else LATEST

    def starts(admin: Admin) -> dict[TopicPartition, int]:
        places = _places(admin, wanted.topic, wanted.partition)
        if wanted.kind == PRODUCER:
            return {}
        found = admin.offsets(dict.fromkeys(places, at))
        late = [place for place, offset in found.items() if offset.offset < 0]
        ends = admin.offsets(dict.fromkeys(late, LATEST)) if late else {}
        return {place: ends.get(place, offset).offset for place, offset in found.items()}

    positions = await parts.cluster.run(starts)
    client = RegisteredClient(
        "", caller.name, wanted.kind, wanted.name, wanted.topic, wanted.partition, wanted.delivery, 0, 0
    )
    added = await parts.registrations.add(client, positions)
    location = f"{request.scope.get('root_path', '')}/v1/clients/{added.id}"
    return respond(request, _view(added), status=201, headers={"location": location})


@router.get("", response_model=list[ClientView], summary="List the caller's registered clients")
async def list_clients(request: Request, parts: Parts, caller: CurrentCaller) -> Response:
    return respond(request, [_view(each) for each in await parts.registrations.listed(caller.name)])


@router.get("/{client}", response_model=ClientView, summary="Describe a registered client")
async def describe(request: Request, parts: Parts, caller: CurrentCaller, client: Id) -> Response:
    return respond(request, _view(await parts.registrations.find(client, caller.name)))


@router.delete("/{client}", status_code=204, summary="Remove a registered client and its position")
async def remove(parts: Parts, caller: CurrentCaller, client: Id) -> Response:
    await parts.registrations.remove(await parts.registrations.find(client, caller.name))
    return Response(status_code=204)


@router.post("/{client}/heartbeat", status_code=204, summary="Keep a registered client without other requests")
async def heartbeat(parts: Parts, caller: CurrentCaller, client: Id) -> Response:
    await _alive(parts, caller, client)
    return Response(status_code=204)


@router.post("/{client}/records", response_model=ProducedRecords, summary="Produce records as a registered producer",
             openapi_extra={"requestBody": BODY})  # fmt: skip
async def produce(
    request: Request,
    parts: Parts,
    caller: CurrentCaller,
    client: Id,
    idempotency_key: Annotated[
        str | None, Header(description="Identifies the request; required with delivery exactly-once.")
    ] = None,
) -> Response:
    """Store records in the topic of the producer, with its delivery."""
    found = await _alive(parts, caller, client, PRODUCER)
    acknowledgements(None, found.delivery, idempotency_key)
    body = await request.body()
    records = [
        each._replace(partition=found.partition) if each.partition is None else each
        for each in parse_records(request.headers.get("content-type", ""), body, request.query_params)
    ]
    if any(found.partition not in (None, each.partition) for each in records):
        raise ApiProblem(400, f"this producer is registered for partition {found.partition} alone")
    if idempotency_key is not None:
        return await produce_once(request, found.topic, records, idempotency_key, body)
    return await produce_all(parts, found.topic, records, DELIVERIES[found.delivery])


@router.post("/{client}/reads", response_model=ReadRecords, summary="Read the next records as a registered consumer")
async def read(
    parts: Parts,
    caller: CurrentCaller,
    client: Id,
    max_records: Annotated[int, Query(alias="max", ge=1, le=RECORDS_PER_REQUEST_MAX)] = 100,
    wait_ms: Annotated[int, Query(ge=0, le=READ_WAIT_MS_MAX, description="Time to wait for a first record.")] = 0,
    filter: Annotated[str | None, Query(description="An expression such as value.amount > 100.")] = None,
    shown: Annotated[Shown, Query(alias="as", description="The form of keys and values.")] = "auto",
) -> Response:
    """at-most-once: the position is committed before the response. at-least-once: it moves with `POST …/acks`, and the
    same records come again until then.
    """
    found = await _alive(parts, caller, client, CONSUMER)
    masking, matches = await parts.masks.masking(found.topic, caller), parse_predicate(filter)
    count = len((await parts.cluster.run(lambda admin: existing(admin, found.topic))).partitions)

    async def plan() -> ReadPlan:
        return ReadPlan(
            topic=found.topic, masking=masking, partition=found.partition, records_max=max_records, wait_ms=wait_ms,
            positions=await parts.registrations.positions(found), matches=matches, clamp=True,
        )  # fmt: skip

    if found.delivery != AT_MOST_ONCE:
        return read_response(*await read_all(parts, await plan(), count, shown))
    async with parts.registrations.turn(found) as turn:
        records, reading = await read_all(parts, await plan(), count, shown)
        turn.check()
        await parts.registrations.commit(found, _committed(found, reading.next))
    return read_response(records, reading)


@router.get("/{client}/stream", summary="Stream records as a registered consumer", response_class=Response,
            responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}})  # fmt: skip
async def stream(
    parts: Parts,
    caller: CurrentCaller,
    client: Id,
    filter: Annotated[str | None, Query(description="An expression such as value.amount > 100.")] = None,
    shown: Annotated[Shown, Query(alias="as", description="The form of keys and values.")] = "auto",
    last_event_id: Annotated[
        str | None,
        Header(max_length=POSITIONS_LENGTH_MAX, pattern=POSITIONS, description="The id of the last event received."),
    ] = None,
) -> Response:
    """Server-Sent Events from the position of a consumer with delivery at-least-once.

    The id of an event is the position after it: `POST …/acks` with it as `positions` moves the consumer there. A stream
    that begins without Last-Event-ID repeats what was not acknowledged. The consumer is alive while a stream is open.
    """
    found = await _alive(parts, caller, client, CONSUMER)
    if found.delivery == AT_MOST_ONCE:
        raise ApiProblem(409, f'client "{client}" has delivery at-most-once: read with POST /v1/clients/{client}/reads')
    positions = await parts.registrations.positions(found)
    plan = stream_plan(
        found.topic, masking=await parts.masks.masking(found.topic, caller), partition=found.partition,
        start="earliest", time=None, positions=parse_positions(last_event_id) or positions, filter=filter,
        is_resumed=True,
    )  # fmt: skip
    records = await opened_stream(parts, plan)
    return EventStreamResponse(
        _kept_alive(parts, found, record_events(records, plan, record_view(shown), parts.metrics))
    )


async def _kept_alive(
    parts: ManagerParts, client: RegisteredClient, events: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yield the events, and record that the client is alive; there is at least a heartbeat every few seconds."""
    try:
        async for content in events:
            with suppress(ApiProblem):  # Without the catalog it counts as silent only after ten minutes.
                await parts.registrations.seen(client)
            yield content
    finally:
        await events.aclose()


@router.post("/{client}/acks", status_code=204, summary="Acknowledge what a registered consumer has read")
async def acknowledge(parts: Parts, caller: CurrentCaller, client: Id, given: Acknowledgement) -> Response:
    """The next read begins at these positions: those of a response, or others to read records again or skip some."""
    found = await _alive(parts, caller, client, CONSUMER)
    positions = _committed(found, parse_positions(given.positions))
    known = await parts.cluster.run(lambda admin: _places(admin, found.topic, found.partition))
    for place in positions:
        if place not in known:
            raise ApiProblem(400, f'client "{client}" does not read {place}')
    await parts.registrations.commit(found, positions)
    return Response(status_code=204)


async def _alive(parts: ManagerParts, caller: CurrentCaller, id: str, kind: str | None = None) -> RegisteredClient:
    """Return the client, and record that it is alive."""
    found = await parts.registrations.find(id, caller.name, kind)
    await parts.registrations.seen(found)
    return found


def _places(admin: Admin, topic: str, partition: int | None) -> list[TopicPartition]:
    count = len(existing(admin, topic).partitions)
    if partition is not None and partition >= count:
        raise ApiProblem(404, f'topic "{topic}" has no partition {partition}: it has {count}, from 0 on')
    return [TopicPartition(topic, number) for number in (range(count) if partition is None else (partition,))]


def _committed(client: RegisteredClient, positions: dict[int, int]) -> dict[TopicPartition, int]:
    return {TopicPartition(client.topic, partition): offset for partition, offset in positions.items()}


def _view(client: RegisteredClient) -> ClientView:
    return ClientView(
        client.id, client.kind, client.name, client.topic, client.partition, client.delivery, client.created_ms,
        client.seen_ms,
    )  # fmt: skip

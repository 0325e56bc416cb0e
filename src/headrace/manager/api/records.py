"""Records of a topic: produce them, read them, delete the oldest."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from headrace.client import Admin
from headrace.client.errors import BrokerError, ClientError
from headrace.client.types import LATEST as END
from headrace.client.types import RecordMetadata
from headrace.manager.access.callers import caller_of
from headrace.manager.api.topics import existing
from headrace.manager.batch_details import add_batches
from headrace.manager.event_streams import POSITIONS, positions_text
from headrace.manager.filters import FilterError, Predicate, parse_filter
from headrace.manager.keyed_writes import digest
from headrace.manager.limits import IDEMPOTENCY_KEY_LENGTH_MAX, READ_WAIT_MS_MAX, RECORDS_PER_REQUEST_MAX
from headrace.manager.parts import ManagerParts, Parts, parts_of
from headrace.manager.problems import ApiProblem, problem_of
from headrace.manager.reads import EARLIEST, LATEST, ReadPlan, TopicRead
from headrace.manager.record_bodies import BYTES, JSON, NDJSON, parse_records
from headrace.manager.record_views import Shown, record_view
from headrace.manager.responses import as_json, respond
from headrace.manager.writers import Acks, WrittenRecord
from headrace.model.errors import ErrorCode, error_name
from headrace.model.ids import TopicPartition
from headrace.operations.times import parse_time

router = APIRouter(prefix="/v1/topics/{topic}/records", tags=["records"])

ACKS: dict[str, Acks] = {"all": "all", "1": 1, "0": 0}
DELIVERIES: dict[str, Acks] = {"at-most-once": 0, "at-least-once": "all", "exactly-once": "all"}


def _inlined(name: str) -> dict[str, Any]:
    """Return the schema of a posted body without references."""
    content: dict[str, Any] = {"description": "Any JSON. A string is stored as its text, null as a tombstone."}
    text = {"type": "string", "description": "Bytes in Base64, instead of the member without `_base64`."}
    header = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "value": {"type": ["string", "null"]}, "value_base64": text},
    }
    record = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "value": content,
            "value_base64": text,
            "key": content,
            "key_base64": text,
            "headers": {"type": "array", "items": header},
            "partition": {"type": ["integer", "null"], "minimum": 0, "maximum": 2**31 - 1},
            "timestamp": {"type": ["integer", "null"], "minimum": 0, "description": "Milliseconds since 1970."},
        },
    }
    if name == "one":
        return record
    return {
        "type": "object",
        "required": ["records"],
        "additionalProperties": False,
        "properties": {
            "records": {"type": "array", "items": record, "minItems": 1, "maxItems": RECORDS_PER_REQUEST_MAX}
        },
    }


BODY = {
    "required": True,
    "content": {
        JSON: {
            "schema": {"anyOf": [_inlined("many"), _inlined("one")]},
            "example": {"records": [{"key": "customer-7", "value": {"amount": 12}}]},
        },
        NDJSON: {"schema": {"type": "string"}, "example": '{"value": 1}\n{"value": 2}\n'},
        BYTES: {"schema": {"type": "string", "format": "binary"}},
    },
}


@dataclass(frozen=True, slots=True)
class RecordPlace:
    partition: int
    offset: int
    """-1 if the broker did not return it (acks=0)."""
    timestamp: int


@dataclass(frozen=True, slots=True)
class ProducedRecords:
    records: list[RecordPlace]
    """In the order of the request."""


@router.post("", response_model=ProducedRecords, summary="Produce records", openapi_extra={"requestBody": BODY})
async def produce(
    request: Request,
    topic: str,
    acks: Annotated[Literal["all", "1", "0"] | None, Query(description="Acknowledgements, `all` by default.")] = None,
    delivery: Annotated[Literal["at-most-once", "at-least-once", "exactly-once"] | None, Query()] = None,
    idempotency_key: Annotated[
        str | None, Header(description="Identifies the request, so that a repeat stores nothing again.")
    ] = None,
    key: Annotated[str | None, Query(description="Key of a record that is sent as raw bytes.")] = None,
    partition: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Partition of such a record.")] = None,
    timestamp: Annotated[int | None, Query(ge=0, le=2**63 - 1, description="Timestamp of such a record.")] = None,
) -> Response:
    """Store one record or many, and return their positions.

    If some are not stored, the response is the problem of the first of them, and its `records` has the position or the
    error of each.
    """
    parts = parts_of(request)
    chosen = acknowledgements(acks, delivery, idempotency_key)
    media_type, body = request.headers.get("content-type", ""), await request.body()
    records = parse_records(media_type, body, request.query_params)
    if idempotency_key is not None:
        return await produce_once(request, topic, records, idempotency_key, body)
    return await produce_all(parts, topic, records, chosen)


async def produce_all(parts: ManagerParts, topic: str, records: Sequence[WrittenRecord], acks: Acks) -> Response:
    """Store the records and return their positions."""
    outcomes = await parts.writers.write(topic, records, acks=acks)
    if any(isinstance(each, ClientError) for each in outcomes):
        raise _not_stored(topic, outcomes)
    places = [{"partition": each[1], "offset": each[2], "timestamp": each[3]} for each in outcomes]  # type: ignore[index]
    return Response(as_json({"records": places}), 200, None, JSON)


async def produce_once(
    request: Request, topic: str, records: Sequence[WrittenRecord], key: str, body: bytes
) -> Response:
    """Store the records unless a request with this key has done so, and return their positions in both cases."""
    if not (key.isascii() and key.isprintable() and 0 < len(key) <= IDEMPOTENCY_KEY_LENGTH_MAX):
        raise ApiProblem(400, f"Idempotency-Key must have 1 to {IDEMPOTENCY_KEY_LENGTH_MAX} printable ASCII characters")
    parts, media_type = parts_of(request), request.headers.get("content-type", "")
    outcome = await parts.keyed.write(
        key=digest(caller_of(request).name.encode(), key.encode()),
        request=digest(topic.encode(), media_type.encode(), str(request.query_params).encode(), body),
        topic=topic,
        records=records,
    )
    if not outcome.is_repeat:
        parts.metrics.records_produced += len(records)
    places = [{"partition": each[0], "offset": each[1], "timestamp": each[2]} for each in outcome.places]
    headers = {"idempotency-replayed": "true"} if outcome.is_repeat else None
    return Response(as_json({"records": places}), 200, headers, JSON)


def acknowledgements(acks: str | None, delivery: str | None, idempotency_key: str | None) -> Acks:
    """Return the acknowledgements that the parameters ask for, unless they contradict each other."""
    if delivery == "exactly-once" and idempotency_key is None:
        raise ApiProblem(400, "delivery=exactly-once needs the header Idempotency-Key, which identifies a repeat")
    if idempotency_key is not None and (acks not in (None, "all") or delivery == "at-most-once"):
        raise ApiProblem(400, "a request with Idempotency-Key is stored exactly once: leave acks and delivery out")
    if delivery is None:
        return ACKS[acks or "all"]
    if acks is not None and ACKS[acks] != DELIVERIES[delivery]:
        raise ApiProblem(400, f"delivery={delivery} means acks={DELIVERIES[delivery]}, not {acks}: leave acks out")
    return DELIVERIES[delivery]


def _not_stored(topic: str, outcomes: list[RecordMetadata | ClientError]) -> ApiProblem:
    failed = [each for each in outcomes if isinstance(each, ClientError)]
    first = failed[0]
    problem = problem_of(first)
    assert problem is not None
    detail = f'{len(failed)} of {len(outcomes)} records were not stored in topic "{topic}": {problem.detail}'
    extra = {"records": [_place_or_error(each) for each in outcomes]}
    return ApiProblem(problem.status, detail, error=problem.error, extra=extra)


def _place_or_error(outcome: RecordMetadata | ClientError) -> dict[str, object]:
    if isinstance(outcome, RecordMetadata):
        return {"partition": outcome.partition, "offset": outcome.offset, "timestamp": outcome.timestamp}
    return {"error": error_name(outcome.code) if isinstance(outcome, BrokerError) else type(outcome).__name__}


@dataclass(frozen=True, slots=True)
class ReadHeader:
    name: str
    value: str | None = None
    value_base64: str | None = None


@dataclass(frozen=True, slots=True)
class ReadBatch:
    base_offset: int
    last_offset: int
    leader_epoch: int
    codec: str
    size: int | None
    """Bytes of the batch; null where a mask hides something, as is `crc`."""
    crc: int | None
    transactional: bool
    producer_id: int
    """-1 if the producer was not idempotent, as are its epoch and the sequence of the record."""
    producer_epoch: int
    sequence: int


@dataclass(frozen=True, slots=True)
class ReadRecord:
    partition: int
    offset: int
    timestamp: int
    size: int
    """Bytes of the key and the value."""
    key: Any = None
    key_base64: str | None = None
    value: Any = None
    value_base64: str | None = None
    headers: list[ReadHeader] | None = None
    batch: ReadBatch | None = None
    """The batch in which the brokers store it, if the request asked for `batches`."""


@dataclass(frozen=True, slots=True)
class ReadRecords:
    records: list[ReadRecord]
    positions: str
    """The parameter `positions` of a request that continues from here."""
    complete: bool
    """False if a filter, or the size of the response, ended the request before `max` records or the end."""


@router.get("", response_model=ReadRecords, summary="Read records",
            responses={200: {"content": {NDJSON: {"schema": {"type": "string"}}}}})  # fmt: skip
async def read(
    request: Request,
    parts: Parts,
    topic: str,
    partition: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="One partition alone.")] = None,
    offset: Annotated[int | None, Query(ge=0, le=2**63 - 1, description="Start there; needs `partition`.")] = None,
    time: Annotated[str | None, Query(max_length=40, description="Start at this time, such as 15m (ago).")] = None,
    start: Annotated[Literal["earliest", "latest"], Query(alias="from")] = "earliest",
    positions: Annotated[
        str | None, Query(max_length=1_000_000, pattern=POSITIONS, description="As the previous response had them.")
    ] = None,
    max_records: Annotated[int, Query(alias="max", ge=1, le=RECORDS_PER_REQUEST_MAX)] = 100,
    wait_ms: Annotated[int, Query(ge=0, le=READ_WAIT_MS_MAX, description="Time to wait for a first record.")] = 0,
    filter: Annotated[str | None, Query(description="An expression such as value.amount > 100.")] = None,
    shown: Annotated[Shown, Query(alias="as", description="The form of keys and values.")] = "auto",
    batches: Annotated[bool, Query(description="Show codec, checksum and producer of each record's batch.")] = False,
) -> Response:
    """Read committed records of one partition, or of the whole topic, going round its partitions.

    With `Accept: application/x-ndjson` each record is a line, and the header of the stream does not have `positions`.
    """
    plan = ReadPlan(
        topic=topic,
        masking=await parts.masks.masking(topic, caller_of(request)),
        partition=partition,
        positions=parse_positions(positions),
        offset=_offset(offset, partition),
        time_ms=parse_start_time(time),
        start=EARLIEST if start == "earliest" else LATEST,
        records_max=max_records,
        wait_ms=wait_ms,
        matches=parse_predicate(filter),
    )
    count = len((await parts.cluster.run(lambda admin: existing(admin, topic))).partitions)
    if batches:
        found, reading = await read_all(parts, plan, count, shown)
        is_masked = parts.masks.hides(topic, caller_of(request))
        await add_batches(parts.settings.cluster, topic, found, is_masked=is_masked)
        return read_response(found, reading)
    if NDJSON in request.headers.get("accept", ""):
        lines = _lines(parts, plan, count, shown)
        first = await anext(lines, b"")  # An error before the first record is still a problem with a status.
        return StreamingResponse(_resumed(first, lines), media_type=NDJSON)
    return read_response(*await read_all(parts, plan, count, shown))


async def read_all(
    parts: ManagerParts, plan: ReadPlan, count: int, shown: Shown
) -> tuple[list[dict[str, Any]], TopicRead]:
    """Return the records of a plan, and the reading with the positions after them."""
    view = record_view(shown)
    found: list[dict[str, Any]] = []
    async with parts.readers.lend() as consumer:
        reading = TopicRead(plan, consumer)
        await reading.begin(count)
        async for records in reading.records():
            found += [view(record) for record in records]
    parts.metrics.records_consumed += len(found)
    return found, reading


def read_response(found: list[dict[str, Any]], reading: TopicRead) -> Response:
    content = as_json({"records": found, "positions": positions_text(reading.next), "complete": reading.is_complete})
    return Response(content, 200, {"cache-control": "no-store"}, JSON)


async def _lines(parts: ManagerParts, plan: ReadPlan, count: int, shown: Shown) -> AsyncIterator[bytes]:
    view = record_view(shown)
    async with parts.readers.lend() as consumer:
        reading = TopicRead(plan, consumer)
        await reading.begin(count)
        async for records in reading.records():
            parts.metrics.records_consumed += len(records)
            yield b"".join([as_json(view(record)) + b"\n" for record in records])


async def _resumed(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


def parse_positions(text: str | None) -> dict[int, int]:
    found: dict[int, int] = {}
    for each in text.split(",") if text else ():
        partition, _, position = each.partition(":")
        found[int(partition)] = int(position)
    return found


def _offset(offset: int | None, partition: int | None) -> int | None:
    if offset is not None and partition is None:
        raise ApiProblem(400, "an offset belongs to a partition: give partition too, or positions=0:OFFSET,1:OFFSET")
    return offset


def parse_start_time(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return max(parse_time(text, now=datetime.now(UTC)), 0)
    except (ValueError, OverflowError) as wrong:
        raise ApiProblem(400, f"time: {wrong}") from None


def parse_predicate(text: str | None) -> Predicate | None:
    if text is None:
        return None
    try:
        return parse_filter(text)
    except FilterError as wrong:
        raise ApiProblem(400, f"filter: {wrong}") from None


@dataclass(frozen=True, slots=True)
class DeletedView:
    partition: int
    first_offset: int
    """The first offset that remains."""


@router.delete("", response_model=list[DeletedView], summary="Delete records from the start of partitions")
async def delete(
    request: Request,
    parts: Parts,
    topic: str,
    partition: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="One partition alone.")] = None,
    before: Annotated[
        int | None, Query(ge=0, le=2**63 - 1, description="Delete the records below this offset; all without it.")
    ] = None,
) -> Response:
    """Empty the topic, or delete the records of a partition below an offset. Deleted records cannot be restored."""
    _offset(before, partition)

    def deleted(admin: Admin) -> list[DeletedView]:
        count = len(existing(admin, topic).partitions)
        if partition is not None and partition >= count:
            raise ApiProblem(404, f'topic "{topic}" has no partition {partition}: it has {count}, from 0 on')
        chosen = range(count) if partition is None else (partition,)
        places = [TopicPartition(topic, number) for number in chosen]
        found = admin.delete_records(dict.fromkeys(places, END if before is None else before))
        for place, outcome in found.items():
            if outcome.error != ErrorCode.NONE:
                raise BrokerError(outcome.error, f"records of {place} cannot be deleted")
        return [DeletedView(place.partition, outcome.low_watermark) for place, outcome in found.items()]

    return respond(request, await parts.cluster.run(deleted))

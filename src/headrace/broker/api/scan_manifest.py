"""ScanManifest (32010): leases the files of partitions to a job that reads them itself, a page at a time."""

from collections.abc import Sequence

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_each, known
from headrace.broker.cluster.proposal import Proposal
from headrace.broker.partitions.held_segments import HeldPartition, HeldSegment
from headrace.broker.partitions.scan_leases import Lease
from headrace.core.controller.records import SCAN_VERSION
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.scan_manifest import (
    ScanManifestRequest,
    ScanManifestRequestPartition,
    ScanManifestResponse,
    ScanManifestResponseAbortedTransaction,
    ScanManifestResponseDirectory,
    ScanManifestResponseLeaderEpoch,
    ScanManifestResponsePartition,
    ScanManifestResponseSegment,
    ScanManifestResponseTopic,
)

PARTITIONS_MAX = 100
"""Partitions in one request."""

SEGMENTS_PER_RESPONSE = 2_000
"""Segments of all partitions together; the client requests the rest with `from_offset`."""

NEW_LEASE = bytes(16)
_NO_MORE = -1

Asked = tuple[str, ScanManifestRequestPartition]


def handle(request: ScanManifestRequest, ctx: RequestContext) -> object:
    asked = [(topic.name, partition) for topic in request.topics for partition in topic.partitions]
    if ctx.image.features.get(SCAN_VERSION, 0) < 1:
        return _failed(ctx, ErrorCode.UNSUPPORTED_VERSION, f"{SCAN_VERSION} is off")
    if len(asked) > PARTITIONS_MAX or request.isolation_level not in (0, 1):
        return _failed(ctx, ErrorCode.INVALID_REQUEST, f"a request may name at most {PARTITIONS_MAX} partitions")
    scans, client = ctx.scans, ctx.requester
    refused = {topic.name for topic in request.topics if not scans.may_scan(client, topic.name)}
    is_new = request.lease_id == NEW_LEASE
    may_scan_some = ctx.authorized(Operation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME) and (
        not asked or any(name not in refused for name, _partition in asked)
    )
    if is_new and not may_scan_some:
        return _response(ctx, None, asked, [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(asked))
    lease = scans.begin(client) if is_new else scans.find(request.lease_id, ctx.principal)
    if isinstance(lease, ErrorCode):
        return _failed(ctx, lease, "too many scans hold files" if is_new else "the lease is over")
    scans.renew(lease, request.lease_ms)

    def hold(wanted: Asked) -> Proposal[object]:
        name, partition = wanted
        if name in refused:
            return known(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return _hold(ctx, lease, name, partition.partition_index, request.isolation_level)

    def respond(outcomes: list[HeldPartition | ErrorCode]) -> ScanManifestResponse:
        return _response(ctx, lease, asked, outcomes)

    return ask_each(ctx, asked, hold, lambda _wanted, outcome: outcome, respond)


def _hold(ctx: RequestContext, lease: Lease, name: str, index: int, isolation_level: int) -> Proposal[object]:
    proposal: Proposal[object] = Proposal()
    partitions = ctx.partitions
    found = partitions.partition_of(partitions.by_name.get(name.encode()), index)
    if isinstance(found, ErrorCode):
        proposal.complete(found)
    else:
        ctx.scans.hold(lease, found, isolation_level, proposal.complete)
    return proposal


def _response(
    ctx: RequestContext, lease: Lease | None, asked: list[Asked], outcomes: Sequence[HeldPartition | ErrorCode]
) -> ScanManifestResponse:
    """`lease` is None if every partition has an error."""
    room = SEGMENTS_PER_RESPONSE
    topics: dict[tuple[str, bytes], list[ScanManifestResponsePartition]] = {}
    directories: dict[bytes, str] = {}
    for (name, partition), outcome in zip(asked, outcomes, strict=True):
        if isinstance(outcome, ErrorCode):
            page = ScanManifestResponsePartition(partition_index=partition.partition_index, error_code=outcome)
            topics.setdefault((name, NEW_LEASE), []).append(page)
            continue
        assert lease is not None
        page = _page(lease, outcome, partition.from_offset, room)
        room -= len(page.segments)
        topics.setdefault((name, outcome.topic_id), []).append(page)
        directories[outcome.directory.directory_id] = ctx.disk.absolute(outcome.directory.path)
    return ScanManifestResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        cluster_id=ctx.cluster_id,
        node_id=ctx.node_id,
        lease_id=NEW_LEASE if lease is None else lease.lease_id,
        lease_ms=0 if lease is None else lease.duration_ms,
        directories=tuple(
            ScanManifestResponseDirectory(directory_id=key, path=path) for key, path in directories.items()
        ),
        topics=tuple(
            ScanManifestResponseTopic(name=name, topic_id=topic_id, partitions=tuple(partitions))
            for (name, topic_id), partitions in topics.items()
        ),
    )


def _page(lease: Lease, held: HeldPartition, from_offset: int, room: int) -> ScanManifestResponsePartition:
    """Return some segments from that offset on, and the aborted transactions that begin below their end."""
    left = [segment for segment in held.segments if segment.base_offset >= from_offset]
    page, more = left[: max(room, 0)], left[max(room, 0) :]
    until = more[0].base_offset if more else held.end_offset
    since = max(from_offset, held.start_offset) if from_offset >= 0 else -1
    aborted = [entry for entry in held.aborted if entry[1] < until and entry[2] >= since] if page or not more else []
    return ScanManifestResponsePartition(
        partition_index=held.partition,
        directory_id=held.directory.directory_id,
        folder=lease.folder_of(held).removeprefix(f"{held.directory.path}/"),
        leader_epoch=held.leader_epoch,
        start_offset=held.start_offset,
        end_offset=held.end_offset,
        high_watermark=held.high_watermark,
        last_stable_offset=held.last_stable_offset,
        leader_epochs=tuple(
            ScanManifestResponseLeaderEpoch(epoch=epoch, start_offset=start) for epoch, start in held.leader_epochs
        ),
        segments=tuple(map(_segment, page)),
        aborted_transactions=tuple(
            ScanManifestResponseAbortedTransaction(producer_id=producer_id, first_offset=first, last_offset=last)
            for producer_id, first, last in aborted
        ),
        next_offset=more[0].base_offset if more else _NO_MORE,
    )


def _segment(held: HeldSegment) -> ScanManifestResponseSegment:
    return ScanManifestResponseSegment(
        base_offset=held.base_offset,
        end_offset=held.end_offset,
        file_name=held.file_name,
        size_bytes=held.size_bytes,
        max_timestamp=held.max_timestamp,
        is_closed=held.is_closed,
    )


def _failed(ctx: RequestContext, error: ErrorCode, message: str) -> ScanManifestResponse:
    return ScanManifestResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=error,
        error_message=message,
        cluster_id=ctx.cluster_id,
        node_id=ctx.node_id,
    )

"""Scans: request the segment files of partitions from their leaders, page by page, and release them."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence

from headrace.client.core.admin.routing import ATTEMPT_PAUSE_MS, ATTEMPTS_MAX
from headrace.client.core.calls import Operation, Pause, ask
from headrace.client.core.cluster import Cluster, fetch_metadata
from headrace.client.errors import BrokerError, ClientError
from headrace.client.scans import AbortedRange, EpochStart, ScanLease, ScanManifest, ScanPartition, ScanSegment
from headrace.client.types import IsolationLevel
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.messages import scan_manifest as manifest_api
from headrace.wire.messages import scan_release as release_api

NEW_LEASE = bytes(16)
PARTITIONS_PER_REQUEST = 100
PAGES_MAX = 10_000
EXCHANGES_MAX = 200
"""Attempts while files are being swapped; with the pauses, they take most of the time of a call."""
_FROM_THE_BEGIN = -1
_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE)
"""Errors of a partition that another broker leads, or that has just been created."""


def manifest(
    cluster: Cluster, wanted: Iterable[TopicPartition], *, isolation_level: IsolationLevel, lease_ms: int
) -> Operation[ScanManifest]:
    """Return the manifest of all these partitions or none: if one fails, the leases are released."""
    partitions = sorted(set(wanted))
    for attempt in range(ATTEMPTS_MAX):
        try:
            return (yield from _manifest(cluster, partitions, isolation_level, lease_ms))
        except BrokerError as error:
            if error.code not in _MOVED or attempt == ATTEMPTS_MAX - 1:
                raise
        yield Pause(ATTEMPT_PAUSE_MS)
    raise AssertionError("the last attempt returns or raises")


def _manifest(
    cluster: Cluster, partitions: Sequence[TopicPartition], isolation_level: IsolationLevel, lease_ms: int
) -> Operation[ScanManifest]:
    """Request the files of each partition from the broker that leads it according to the metadata of now."""
    cluster.learn((yield from fetch_metadata(tuple({each.topic for each in partitions}))))
    by_leader: dict[int, list[TopicPartition]] = {}
    for each in partitions:
        by_leader.setdefault(_leader_of(cluster, each), []).append(each)
    leases: list[ScanLease] = []
    found: list[ScanPartition] = []
    cluster_id = ""
    try:
        for node, led in by_leader.items():
            lease = ScanLease(node, NEW_LEASE, lease_ms)
            for first in range(0, len(led), PARTITIONS_PER_REQUEST):
                part = led[first : first + PARTITIONS_PER_REQUEST]
                cluster_id, lease, told = yield from _pages(lease, part, isolation_level, leases)
                found += told
    except ClientError:
        yield from release(leases)
        raise
    return ScanManifest(cluster_id, tuple(leases), tuple(sorted(found)))


def _leader_of(cluster: Cluster, partition: TopicPartition) -> int:
    leader = cluster.leader(partition)
    if leader is None:
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition} has no leader; try again when its broker is back"
        )
    return leader


def _pages(
    lease: ScanLease, partitions: Sequence[TopicPartition], isolation_level: IsolationLevel, leases: list[ScanLease]
) -> Operation[tuple[str, ScanLease, list[ScanPartition]]]:
    """Return the lease with its id, and all files of these partitions."""
    told: dict[TopicPartition, ScanPartition] = {}
    left = dict.fromkeys(partitions, _FROM_THE_BEGIN)
    cluster_id = ""
    exchanges = 0
    for _ in range(PAGES_MAX):
        response = yield from _ask(lease, left, isolation_level)
        cluster_id = response.cluster_id
        if lease.lease_id == NEW_LEASE:
            lease = ScanLease(response.node_id, response.lease_id, response.lease_ms)
            leases.append(lease)
        exchanged = _exchanged(response) if exchanges < EXCHANGES_MAX else frozenset()
        left = _take(response, told, exchanged)
        if not left:
            return cluster_id, lease, list(told.values())
        if exchanged:
            exchanges += 1
            yield Pause(ATTEMPT_PAUSE_MS)
    raise BrokerError(
        ErrorCode.INVALID_REQUEST, f"the manifest has more than {PAGES_MAX} pages; scan fewer partitions at once"
    )


def _ask(
    lease: ScanLease, left: dict[TopicPartition, int], isolation_level: IsolationLevel
) -> Operation[manifest_api.ScanManifestResponse]:
    topics: dict[str, list[manifest_api.ScanManifestRequestPartition]] = {}
    for (topic, index), from_offset in left.items():
        asked = manifest_api.ScanManifestRequestPartition(partition_index=index, from_offset=from_offset)
        topics.setdefault(topic, []).append(asked)
    request = manifest_api.ScanManifestRequest(
        lease_id=lease.lease_id,
        lease_ms=lease.lease_ms,
        isolation_level=isolation_level,
        topics=tuple(
            manifest_api.ScanManifestRequestTopic(name=name, partitions=tuple(asked)) for name, asked in topics.items()
        ),
    )
    response = yield from ask(manifest_api, request, target=lease.node)
    if response.error_code:
        raise BrokerError(response.error_code, "the broker refused to share its files", response.error_message)
    return response


def _exchanged(response: manifest_api.ScanManifestResponse) -> frozenset[TopicPartition]:
    """Return the partitions whose files compaction or retention kept swapping while the broker listed them."""
    return frozenset(
        TopicPartition(topic.name, page.partition_index)
        for topic in response.topics
        for page in topic.partitions
        if page.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    )


def _take(
    response: manifest_api.ScanManifestResponse,
    told: dict[TopicPartition, ScanPartition],
    exchanged: frozenset[TopicPartition],
) -> dict[TopicPartition, int]:
    """Add a page; return the partitions with more files, or none yet, and the offset to continue from."""
    directories = {each.directory_id: each.path for each in response.directories}
    left = dict.fromkeys(exchanged, _FROM_THE_BEGIN)
    for place in exchanged:
        told.pop(place, None)  # Earlier pages name files that are gone; everything is listed again.
    for topic in response.topics:
        for page in topic.partitions:
            place = TopicPartition(topic.name, page.partition_index)
            if place in exchanged:
                continue
            if page.error_code:
                raise BrokerError(page.error_code, f"the broker listed no files of {place}", page.error_message)
            new = _partition(response.node_id, topic, page, directories[page.directory_id])
            before = told.get(place)
            told[place] = new if before is None else _joined(before, new)
            if page.next_offset >= 0:
                left[place] = page.next_offset
    return left


def _joined(before: ScanPartition, page: ScanPartition) -> ScanPartition:
    aborted = tuple(sorted({*before.aborted, *page.aborted}, key=lambda each: each.last_offset))
    return before._replace(segments=before.segments + page.segments, aborted=aborted)


def _partition(
    node: int,
    topic: manifest_api.ScanManifestResponseTopic,
    page: manifest_api.ScanManifestResponsePartition,
    directory: str,
) -> ScanPartition:
    return ScanPartition(
        topic=topic.name,
        partition=page.partition_index,
        topic_id=topic.topic_id,
        node=node,
        directory_id=urlsafe_b64encode(page.directory_id).decode().rstrip("="),
        directory=directory,
        folder=page.folder,
        leader_epoch=page.leader_epoch,
        start_offset=page.start_offset,
        end_offset=page.end_offset,
        high_watermark=page.high_watermark,
        last_stable_offset=page.last_stable_offset,
        leader_epochs=tuple(EpochStart(each.epoch, each.start_offset) for each in page.leader_epochs),
        segments=tuple(
            ScanSegment(
                each.base_offset, each.end_offset, each.file_name, each.size_bytes, each.max_timestamp, each.is_closed
            )
            for each in page.segments
        ),
        aborted=tuple(
            AbortedRange(each.producer_id, each.first_offset, each.last_offset) for each in page.aborted_transactions
        ),
    )


def renew(leases: Sequence[ScanLease]) -> Operation[None]:
    for lease in leases:
        yield from _ask(lease, {}, IsolationLevel.READ_COMMITTED)


def release(leases: Sequence[ScanLease]) -> Operation[None]:
    for lease in leases:
        yield from ask(release_api, release_api.ScanReleaseRequest(lease_id=lease.lease_id), target=lease.node)

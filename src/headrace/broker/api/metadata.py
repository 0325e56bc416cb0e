"""Metadata (3): brokers, topics and partition leaders, from the committed image.

The encoded bytes of a topic are cached until the image changes, so that clients which refresh a thousand topics cost
little. A request for many topics is answered over several turns, a slice at a time.
"""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import (
    TOPIC_OPERATIONS,
    authorized_operations,
    cluster_operations,
    may_create_topic,
    split_by_access,
)
from headrace.broker.api.support.mutation_quota import MutationQuota
from headrace.core.controller.commands import CreatableTopic, Refused
from headrace.core.controller.names import INTERNAL_TOPICS, check_topic_name
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicId
from headrace.model.limits import METADATA_BYTES_AT_ONCE_MAX, METADATA_TOPICS_MAX, METADATA_TOPICS_PER_SLICE
from headrace.wire.errors import ProtocolError
from headrace.wire.messages import metadata as codec
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.metadata import (
    NO_AUTHORIZED_OPERATIONS,
    BrokerMetadata,
    RequestedTopic,
    TopicsScan,
    encode_response,
    encode_topic,
)

_NULL_MEANS_ALL_FROM = 1
_AUTO_CREATION_FLAG_FROM = 4


def decode_request(frame: memoryview, position: int, end: int, version: int) -> MetadataRequest | TopicsScan:
    scan = TopicsScan(bytes(frame[position:end]), version) if end - position > METADATA_BYTES_AT_ONCE_MAX else None
    if scan is None or not scan.left:
        return codec.decode_request(frame, position, end, version)
    if scan.left > METADATA_TOPICS_MAX:
        raise ProtocolError(f"Metadata of {scan.left} topics exceeds the limit of {METADATA_TOPICS_MAX}")
    return scan


def handle(request: MetadataRequest | TopicsScan, ctx: RequestContext) -> bytes | Parked:
    if isinstance(request, TopicsScan):
        parked = ctx.park()
        _LongRequest(request, ctx, parked).step()
        return parked
    wanted = _wanted(request, ctx)
    missing, forbidden = _topics_to_create(request, ctx, wanted)
    builder = _ResponseBuilder(request, ctx, wanted, forbidden)
    if not missing and len(wanted) <= METADATA_TOPICS_PER_SLICE:
        builder.step()
        return builder.body()
    parked = ctx.park()
    builder.when_created(missing, parked)
    return parked


class _LongRequest:
    """A request that is too long to be decoded in one turn."""

    def __init__(self, scan: TopicsScan, ctx: RequestContext, parked: Parked) -> None:
        self._scan = scan
        self._ctx = ctx
        self._parked = parked
        self._wanted: dict[RequestedTopic, None] = {}

    def step(self) -> None:
        if self._parked.abandoned():
            return
        try:
            for topic in self._scan.take(METADATA_TOPICS_PER_SLICE):
                self._wanted[_known_by_something(topic)] = None
            if self._scan.left:
                self._ctx.next_turn(self.step)
                return
            request = self._scan.rest()
        except ProtocolError as error:
            self._ctx.reject(self._parked, error)
            return
        wanted = list(self._wanted)
        missing, forbidden = _topics_to_create(request, self._ctx, wanted)
        _ResponseBuilder(request, self._ctx, wanted, forbidden).when_created(missing, self._parked)


class _ResponseBuilder:
    """A response under construction."""

    def __init__(
        self, request: MetadataRequest, ctx: RequestContext, wanted: list[RequestedTopic], forbidden: frozenset[str]
    ) -> None:
        """`forbidden` are missing topics that the client may not create."""
        self._request = request
        self._ctx = ctx
        self._wanted = wanted
        self._forbidden = forbidden
        self._position = 0
        self._fragments: list[bytes] = []

    def when_created(self, missing: list[CreatableTopic], parked: Parked) -> None:
        if missing:
            self._ctx.create_topics(missing, lambda: self.complete_in_slices(parked))
        else:
            self.complete_in_slices(parked)

    def complete_in_slices(self, parked: Parked) -> None:
        """Add a slice per turn, then complete the response."""
        if parked.abandoned():
            return
        self.step()
        if self._position < len(self._wanted):
            self._ctx.next_turn(lambda: self.complete_in_slices(parked))
        else:
            parked.complete(self.body())

    def step(self) -> None:
        end = min(self._position + METADATA_TOPICS_PER_SLICE, len(self._wanted))
        ask_operations = self._request.include_topic_authorized_operations
        for topic in self._wanted[self._position : end]:
            fragment = _fragment(self._ctx, topic, ask_operations, self._forbidden)
            if fragment is not None:
                self._fragments.append(fragment)
        self._position = end

    def body(self) -> bytes:
        ctx, image = self._ctx, self._ctx.image
        operations = NO_AUTHORIZED_OPERATIONS
        if self._request.include_cluster_authorized_operations:
            operations = cluster_operations(ctx)
        return encode_response(
            ctx.version,
            throttle_time_ms=ctx.throttle_time_ms,
            brokers=[
                BrokerMetadata(node_id, endpoint.host, endpoint.port, image.brokers[node_id].rack)
                for node_id, endpoint in ctx.topic_metadata.brokers(ctx.listener_name)
            ],
            cluster_id=ctx.cluster_id,
            # Every broker forwards requests for the controller, and the client has just reached this one. A client that
            # is given the active controller keeps asking that node after its death (librdkafka, for five minutes).
            controller_id=ctx.node_id,
            topics=self._fragments,
            cluster_authorized_operations=operations,
        )


def _wanted(request: MetadataRequest, ctx: RequestContext) -> list[RequestedTopic]:
    """Return the requested topics by name or id; all of them for null, and before version 1 for an empty list."""
    if request.topics is None or (not request.topics and ctx.version < _NULL_MEANS_ALL_FROM):
        seen = (
            name
            for name in ctx.image.topics
            if ctx.access.open_to_all or ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, name)
        )
        return [RequestedTopic(NO_TOPIC_ID, name) for name in seen]
    found = (_known_by_something(RequestedTopic(topic.topic_id, topic.name)) for topic in request.topics)
    return list(dict.fromkeys(found))  # one that is requested twice is described once


def _known_by_something(topic: RequestedTopic) -> RequestedTopic:
    if topic.name is None and topic.topic_id == NO_TOPIC_ID:
        raise ProtocolError("a topic without a name or an id in a Metadata request")
    return topic


def _topics_to_create(
    request: MetadataRequest, ctx: RequestContext, wanted: list[RequestedTopic]
) -> tuple[list[CreatableTopic], frozenset[str]]:
    """Return the missing topics to create, and the names of those that the client may see but not create."""
    if not ctx.config.auto_create_topics or request.topics is None:
        return [], frozenset()
    if ctx.version >= _AUTO_CREATION_FLAG_FROM and not request.allow_auto_topic_creation:
        return [], frozenset()
    known = ctx.image.topics
    # An internal topic is created by its coordinator, with the configs that it needs.
    missing = dict.fromkeys(
        name
        for topic in wanted
        if (name := topic.name) is not None
        and name not in known
        and name not in INTERNAL_TOPICS
        and _is_legal(name)
        and ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, name)
    )
    allowed, forbidden = split_by_access(missing, lambda name: may_create_topic(ctx, name))
    return _within_quota(ctx, allowed), frozenset(forbidden)


def _within_quota(ctx: RequestContext, names: list[str]) -> list[CreatableTopic]:
    """Return the topics that the client may create now; it asks again for the others."""
    quota = MutationQuota(ctx, strict_from=0)
    return [CreatableTopic(name=name) for name in names if quota.admits(name, ctx.config.num_partitions)]


def _fragment(
    ctx: RequestContext, wanted: RequestedTopic, ask_operations: bool, forbidden: frozenset[str]
) -> bytes | None:
    image, version = ctx.image, ctx.version
    by_id = wanted.topic_id != NO_TOPIC_ID
    topic = image.topics_by_id.get(TopicId(wanted.topic_id)) if by_id else image.topics.get(wanted.name or "")
    name = wanted.name if topic is None else topic.name
    operations = NO_AUTHORIZED_OPERATIONS
    if ask_operations and name is not None:
        # For a missing topic too: kafka-python 2.x cannot decode the absent value if it asked for one.
        operations = authorized_operations(ctx, TOPIC_OPERATIONS, AclResourceType.TOPIC, name)
    if name is not None and (
        (topic is None and name in forbidden) or not ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, name)
    ):
        # Whether the topic exists or not: a client must not find out.
        return _without_partitions(version, ErrorCode.TOPIC_AUTHORIZATION_FAILED, wanted, NO_AUTHORIZED_OPERATIONS)
    if topic is None:
        if by_id:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not _is_legal(wanted.name or ""):
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
        else:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _without_partitions(version, error, wanted, operations)
    return ctx.topic_metadata.encoded(topic, ctx.listener_name, version, operations)


def _is_legal(name: str) -> bool:
    try:
        check_topic_name(name)
    except Refused:
        return False
    return True


def _without_partitions(version: int, error: ErrorCode, wanted: RequestedTopic, operations: int) -> bytes:
    return encode_topic(
        version,
        error_code=error,
        name=wanted.name,
        topic_id=wanted.topic_id,
        is_internal=False,
        partitions=(),
        authorized_operations=operations,
    )

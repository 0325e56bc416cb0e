"""ConsumerGroupHeartbeat (68): a KIP-848 member joins, extends its session, or leaves."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import random_uuid, when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import ConsumerHeartbeat, ConsumerHeartbeatResult
from headrace.core.groups.consumer import JOINING_EPOCH
from headrace.core.groups.consumer_group import LEFT_STATIC_EPOCH
from headrace.core.groups.consumer_records import by_topic
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

CONSUMER_PROTOCOL = "consumer"
PROTOCOL_DISABLED = (
    "group.coordinator.rebalance.protocols of the broker does not list consumer: use group.protocol=classic"
)
_MEMBER_ID_BY_CLIENT_FROM = 1


def handle(request: ConsumerGroupHeartbeatRequest, ctx: RequestContext) -> object:
    error, message = _error(request, ctx)
    if error is not ErrorCode.NONE:
        return _response(ctx, ConsumerHeartbeatResult(error, message))

    def respond(outcome: ConsumerHeartbeatResult | ProposalFailed) -> ConsumerGroupHeartbeatResponse:
        if isinstance(outcome, ProposalFailed):
            outcome = ConsumerHeartbeatResult(outcome.code, outcome.message)
        return _response(ctx, outcome)

    return when_known(ctx, ctx.groups.consumer_heartbeat(_command(request, ctx)), respond)


def _error(request: ConsumerGroupHeartbeatRequest, ctx: RequestContext) -> tuple[ErrorCode, str | None]:
    if CONSUMER_PROTOCOL not in ctx.config.groups.protocols:
        return ErrorCode.UNSUPPORTED_VERSION, PROTOCOL_DISABLED
    if not ctx.authorized(Operation.READ, AclResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED, None
    for name in request.subscribed_topic_names or ():
        if not ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    message = _fault(request, ctx.version)
    return (ErrorCode.INVALID_REQUEST if message else ErrorCode.NONE), message


def _fault(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """Describe what makes the request invalid for any group; None if it is valid."""
    joins = request.member_epoch == JOINING_EPOCH
    if not request.group_id:
        return "the group id is empty"
    if not request.member_id and (not joins or version >= _MEMBER_ID_BY_CLIENT_FROM):
        return "the member id is empty"
    if request.instance_id == "" or request.rack_id == "":
        return "the instance id or the rack id is empty"
    if request.member_epoch < LEFT_STATIC_EPOCH:
        return f"the member epoch {request.member_epoch} is invalid"
    if request.member_epoch == LEFT_STATIC_EPOCH and request.instance_id is None:
        return "only a static member can leave temporarily: it needs an instance id"
    if joins and request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "a joining member must name topics or a regular expression"
    if joins and request.rebalance_timeout_ms < 0:
        return "a joining member must give its rebalance timeout"
    if joins and (request.topic_partitions is None or request.topic_partitions):
        return "a joining member must own no partitions"
    return None


def _command(request: ConsumerGroupHeartbeatRequest, ctx: RequestContext) -> ConsumerHeartbeat:
    owned = request.topic_partitions
    return ConsumerHeartbeat(
        group=request.group_id,
        member_id=request.member_id or random_uuid(ctx),
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=request.subscribed_topic_names,
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None
        if owned is None
        else tuple((bytes(topic.topic_id), partition) for topic in owned for partition in topic.partitions),
        client_id=ctx.client_id or "",
        client_host=f"/{ctx.connection.peer_host}",
        requester=ctx.requester,
    )


def _response(ctx: RequestContext, result: ConsumerHeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if result.assignment is not None:
        assignment = ConsumerGroupHeartbeatResponseAssignment(
            topic_partitions=tuple(
                ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in by_topic(result.assignment).items()
            )
        )
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=result.error,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=assignment,
    )

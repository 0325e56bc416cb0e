"""ReportReplicaFaults (32036): a peer reports replicas that it cannot use as it should."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.peer_requests import is_sender
from headrace.core.controller.replica_faults import FAULTS_PER_REQUEST_MAX, FaultyReplica, ReplicaFault
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, TopicId
from headrace.wire.messages.report_replica_faults import ReportReplicaFaultsRequest, ReportReplicaFaultsResponse

_FAULTS = frozenset(ReplicaFault)


def handle(request: ReportReplicaFaultsRequest, ctx: RequestContext) -> ReportReplicaFaultsResponse:
    if not is_sender(ctx, request.broker_id):
        return ReportReplicaFaultsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not ctx.controller.is_active:
        return ReportReplicaFaultsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if len(request.partitions) > FAULTS_PER_REQUEST_MAX or any(
        each.fault not in _FAULTS for each in request.partitions
    ):
        return ReportReplicaFaultsResponse(error_code=ErrorCode.INVALID_REQUEST)
    faulty = [
        FaultyReplica(TopicId(each.topic_id), each.partition_index, each.leader_epoch, ReplicaFault(each.fault))
        for each in request.partitions
    ]
    ctx.membership.replica_faults(NodeId(request.broker_id), request.broker_epoch, faulty)
    return ReportReplicaFaultsResponse()

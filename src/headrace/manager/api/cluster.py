"""The cluster: its health with the reasons, and the metadata quorum."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from headrace.client import Admin
from headrace.client.types import QuorumDescription, QuorumReplica
from headrace.log.checkpoints import encode_uuid
from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem
from headrace.manager.responses import respond
from headrace.operations.cluster_health import ClusterStatus, cluster_status

router = APIRouter(prefix="/v1/cluster", tags=["cluster"])


@dataclass(frozen=True, slots=True)
class ClusterView:
    health: str
    """green, yellow or red."""
    reasons: list[str]
    cluster_id: str | None
    controller: int | None
    brokers: list[int]
    fenced_brokers: list[int]
    voters: list[int] | None
    topics: int
    partitions: int
    partitions_without_leader: int


@dataclass(frozen=True, slots=True)
class QuorumReplicaView:
    node_id: int
    directory_id: str
    log_end_offset: int
    lag: int
    caught_up_ms: int | None


@dataclass(frozen=True, slots=True)
class QuorumView:
    leader: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplicaView]
    observers: list[QuorumReplicaView]


@router.get("", response_model=ClusterView, summary="Health of the cluster")
async def describe(request: Request, parts: Parts) -> Response:
    """green: everything is served. yellow: a broker or voter is missing. red: something is not served."""
    status: ClusterStatus = await parts.cluster.run(cluster_status)
    quorum, found = status.quorum, status.health
    view = ClusterView(
        found.health,
        list(found.reasons),
        status.cluster.cluster_id,
        None if quorum is None else quorum.leader,
        [broker.node_id for broker in status.cluster.brokers],
        list(found.fenced_brokers),
        None if quorum is None else [voter.node_id for voter in quorum.voters],
        status.topics,
        found.partitions,
        found.partitions_without_leader,
    )
    return respond(request, view)


@router.get("/quorum", response_model=QuorumView, summary="The metadata quorum")
async def quorum(request: Request, parts: Parts) -> Response:
    return respond(request, _quorum(await parts.cluster.run(lambda admin: admin.quorum())))


@router.put("/quorum/voters/{node_id}", response_model=QuorumView, summary="Make an observer a voter of the quorum")
async def add_voter(request: Request, parts: Parts, node_id: int) -> Response:
    """For repairs: the active controller promotes observers up to `headrace.controllers.target` by itself."""

    def added(admin: Admin) -> QuorumDescription:
        found = _member(node_id, admin.quorum().observers, "observer")
        admin.add_voter(node_id, found.directory_id)
        return admin.quorum()

    return respond(request, _quorum(await parts.cluster.run(added)))


@router.delete("/quorum/voters/{node_id}", response_model=QuorumView, summary="Remove a voter of the quorum")
async def remove_voter(request: Request, parts: Parts, node_id: int) -> Response:
    """For example one whose machine is lost. A controller that runs becomes an observer."""

    def removed(admin: Admin) -> QuorumDescription:
        found = _member(node_id, admin.quorum().voters, "voter")
        admin.remove_voter(node_id, found.directory_id)
        return admin.quorum()

    return respond(request, _quorum(await parts.cluster.run(removed)))


def _member(node_id: int, replicas: Sequence[QuorumReplica], role: str) -> QuorumReplica:
    for replica in replicas:
        if replica.node_id == node_id:
            return replica
    known = ", ".join(str(replica.node_id) for replica in replicas) or "none"
    raise ApiProblem(404, f"node {node_id} is no {role} of the metadata quorum; {role}s: {known}")


def _quorum(found: QuorumDescription) -> QuorumView:
    return QuorumView(
        found.leader,
        found.leader_epoch,
        found.high_watermark,
        [_replica(each) for each in found.voters],
        [_replica(each) for each in found.observers],
    )


def _replica(replica: QuorumReplica) -> QuorumReplicaView:
    return QuorumReplicaView(
        replica.node_id,
        encode_uuid(replica.directory_id),
        replica.log_end_offset,
        replica.lag,
        replica.caught_up_ms,
    )

"""Brokers of the cluster: addresses, led partitions, disk usage; unregistering of one that is gone."""

from collections.abc import Iterable
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.client import Admin
from headrace.client.types import ClusterDescription
from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem
from headrace.manager.responses import respond
from headrace.operations.broker_usage import BrokerUsage, cluster_usage

INVITATION_SECONDS_MAX = 7 * 24 * 3_600
router = APIRouter(prefix="/v1/brokers", tags=["brokers"])


@dataclass(frozen=True, slots=True)
class DirectoryView:
    path: str
    error: str
    size_bytes: int
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class BrokerView:
    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool
    leads: int
    """Partitions that it leads."""
    size_bytes: int
    """Bytes of its logs; -1 if it does not answer."""
    log_dirs: list[DirectoryView]


class InvitationWanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    valid_seconds: int = Field(3_600, ge=60, le=INVITATION_SECONDS_MAX, description="Time in which it can be used.")


@dataclass(frozen=True, slots=True)
class InvitationView:
    token: str
    """A secret: a broker joins the cluster with it, once, by `headrace broker --join TOKEN`."""
    expires_ms: int


@router.get("", response_model=list[BrokerView], summary="List the brokers")
async def list_brokers(request: Request, parts: Parts) -> Response:
    """All registered brokers; a shard is a broker with a node id of its own."""
    return respond(request, [_view(usage) for usage in (await parts.cluster.run(cluster_usage)).brokers])


@router.get("/{node_id}", response_model=BrokerView, summary="Describe a broker")
async def describe(request: Request, parts: Parts, node_id: int) -> Response:
    usages = (await parts.cluster.run(cluster_usage)).brokers
    for usage in usages:
        if usage.broker.node_id == node_id:
            return respond(request, _view(usage))
    raise _unknown(node_id, (usage.broker.node_id for usage in usages))


@router.post("/invitations", response_model=InvitationView, status_code=201, summary="Invite a broker to the cluster")
async def invite(request: Request, parts: Parts, wanted: InvitationWanted) -> Response:
    """201 with a token, with which one broker joins: `headrace broker --join TOKEN`."""
    made = await parts.cluster.run(lambda admin: admin.invite(lifetime_ms=wanted.valid_seconds * 1_000))
    headers = {"cache-control": "no-store"}
    return respond(request, InvitationView(made.token, made.expiry_ms), status=201, headers=headers)


@router.delete("/{node_id}", status_code=204, summary="Unregister a broker that is gone for good")
async def unregister(parts: Parts, node_id: int) -> Response:
    """A broker that runs is refused: stop it first, with `headrace down` or a signal."""

    def unregistered(admin: Admin) -> None:
        cluster: ClusterDescription = admin.cluster(include_fenced=True)
        found = [broker for broker in cluster.brokers if broker.node_id == node_id]
        if not found:
            raise _unknown(node_id, (broker.node_id for broker in cluster.brokers))
        if not found[0].is_fenced:
            raise ApiProblem(409, f"broker {node_id} runs: stop it first, and wait until it is fenced")
        admin.unregister_broker(node_id)

    await parts.cluster.run(unregistered)
    return Response(status_code=204)


@router.post("/{node_id}/drain", status_code=202, summary="Move the leadership and replicas of a broker away")
async def drain(parts: Parts, node_id: int) -> Response:
    """501: this cluster does not move replicas; a controlled shutdown moves the leadership away."""
    raise ApiProblem(
        501, f"replicas cannot be moved away from broker {node_id} in this version: stop the broker with SIGTERM, "
        "which moves the leadership of its partitions first"
    )  # fmt: skip


def _unknown(node_id: int, known: Iterable[int]) -> ApiProblem:
    return ApiProblem(404, f"there is no broker {node_id}: the cluster has {', '.join(map(str, known))}")


def _view(usage: BrokerUsage) -> BrokerView:
    broker = usage.broker
    return BrokerView(
        broker.node_id,
        broker.host,
        broker.port,
        broker.rack,
        broker.is_fenced,
        usage.leads,
        usage.size_bytes,
        [
            DirectoryView(
                folder.path,
                folder.error.name,
                sum(replica.size_bytes for replica in folder.replicas),
                folder.total_bytes,
                folder.usable_bytes,
            )
            for folder in usage.log_dirs
        ],
    )

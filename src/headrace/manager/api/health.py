"""Liveness, readiness and metrics of the manager."""

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from headrace.manager.metrics import CONTENT_TYPE
from headrace.manager.parts import Parts
from headrace.manager.responses import respond

router = APIRouter(tags=["manager"])


@dataclass(frozen=True, slots=True)
class Liveness:
    status: str


@dataclass(frozen=True, slots=True)
class Readiness:
    status: str
    cluster_id: str | None
    brokers: int


@router.get("/healthz", response_model=Liveness, summary="Is the manager alive?")
async def healthz(request: Request) -> Response:
    return respond(request, Liveness("alive"))


@router.get("/readyz", response_model=Readiness, summary="Can the manager reach the cluster?")
async def readyz(request: Request, parts: Parts) -> Response:
    """503 while no broker answers."""
    cluster = await parts.cluster.run(lambda admin: admin.cluster())
    return respond(request, Readiness("ready", cluster.cluster_id, len(cluster.brokers)))


@router.get("/metrics", summary="Counters of this manager in the text format of Prometheus", response_class=Response,
            responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})  # fmt: skip
async def metrics(parts: Parts) -> Response:
    return Response(parts.metrics.page(), media_type=CONTENT_TYPE)

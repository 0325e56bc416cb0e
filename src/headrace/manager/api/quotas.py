"""Quotas of the cluster: limits of users, client ids and addresses."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.client import Admin, EntityQuotas
from headrace.core.quotas.entities import CLIENT_ID, IP, USER
from headrace.manager.api.topics import DryRun
from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem, refusal
from headrace.manager.responses import respond
from headrace.model.errors import ErrorCode

router = APIRouter(prefix="/v1/quotas", tags=["access"])
EntityType = Literal["user", "client-id", "ip"]
QuotaKey = Literal[
    "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
    "connection_creation_rate",
]  # fmt: skip
NAME_LENGTH_MAX = 1_000
Name = Annotated[str | None, Query(max_length=NAME_LENGTH_MAX)]


class EntityQuotasChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    entity: dict[EntityType, Annotated[str, Field(max_length=NAME_LENGTH_MAX)] | None] = Field(
        min_length=1, description="A user, a client id, both, or an address; null is the default of all others.",
        examples=[{"user": "ada"}],
    )  # fmt: skip
    quotas: dict[QuotaKey, Annotated[float, Field(gt=0, le=1e15)] | None] = Field(
        min_length=1, description="Limits per second and broker; null removes a quota.",
        examples=[{"producer_byte_rate": 1_048_576, "consumer_byte_rate": None}],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class EntityQuotasView:
    entity: dict[str, str | None]
    quotas: dict[str, float | None]


@router.get("", response_model=list[EntityQuotasView], summary="List quotas")
async def list_quotas(
    request: Request,
    parts: Parts,
    user: Name = None,
    client_id: Name = None,
    ip: Name = None,
) -> Response:
    """All of them, or those of entities with these names."""
    wanted = {kind: name for kind, name in ((USER, user), (CLIENT_ID, client_id), (IP, ip)) if name is not None}
    found = await parts.cluster.run(lambda admin: admin.client_quotas(wanted))
    shown = sorted(found, key=lambda each: [(kind, name or "") for kind, name in sorted(each.entity.items())])
    return respond(request, [_view(each) for each in shown])


@router.patch("", response_model=list[EntityQuotasView], summary="Set and remove quotas of an entity")
async def change(request: Request, parts: Parts, wanted: EntityQuotasChange, dry_run: DryRun = False) -> Response:
    """The quotas of the entity after the change; none if it has none left. They count at once, on every broker."""
    if IP in wanted.entity and len(wanted.entity) > 1:
        raise ApiProblem(400, "an address has quotas of its own: leave user and client-id out")
    entity = {str(kind): name for kind, name in wanted.entity.items()}

    def changed(admin: Admin) -> tuple[EntityQuotas, ...]:
        change = EntityQuotas(entity=entity, limits={str(key): limit for key, limit in wanted.quotas.items()})
        (outcome,) = admin.alter_client_quotas([change], validate_only=dry_run)
        if outcome.error != ErrorCode.NONE:
            raise refusal("cannot change quotas", "", outcome)
        return admin.client_quotas(entity, strict=True)

    return respond(request, [_view(each) for each in await parts.cluster.run(changed)])


def _view(found: EntityQuotas) -> EntityQuotasView:
    return EntityQuotasView(dict(found.entity), dict(found.limits))

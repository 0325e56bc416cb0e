"""Masks: what users below a role do not see of the records of a topic."""

from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from headrace.manager.access.masks import MaskRule, add_rule, listed_rules, remove_rule
from headrace.manager.catalog.engine import now_ms
from headrace.manager.parts import Parts
from headrace.manager.responses import respond
from headrace.ports.real.entropy import RealEntropy

router = APIRouter(prefix="/v1/access/masks", tags=["users"])
ID_BYTES = 6


class MaskToAdd(BaseModel):
    model_config = ConfigDict(extra="forbid")

    topic: str = Field(min_length=1, max_length=250, examples=["payments", "customer-*"])
    """A topic, or the beginning of names with `*` as the last character."""
    field: str = Field(min_length=1, max_length=500, examples=["value.card.number", "headers.token", "key"])
    action: Literal["hide", "hash"] = "hide"
    visible_to: Literal["editor", "admin"] = "admin"
    """The lowest role that sees the field."""


@router.get("", response_model=list[MaskRule], summary="List the masks of records")
async def list_masks(request: Request, parts: Parts) -> Response:
    return respond(request, await parts.catalog.read(listed_rules))


@router.post("", response_model=MaskRule, status_code=201, summary="Mask a field of records")
async def add(request: Request, parts: Parts, wanted: MaskToAdd) -> Response:
    """Users below `visible_to` see `***` or a hash instead, in every response and in filters, within a second."""
    is_prefix = wanted.topic.endswith("*")

    def added(connection: Connection) -> MaskRule:
        rule = MaskRule(
            RealEntropy().random_bytes(ID_BYTES).hex(),
            wanted.topic.removesuffix("*"),
            is_prefix,
            wanted.field,
            wanted.action,
            wanted.visible_to,
            now_ms(connection),
        )
        add_rule(connection, rule)
        return rule

    rule = await parts.catalog.change(added)
    parts.masks.forget()
    return respond(request, rule, status=201)


@router.delete("/{mask}", status_code=204, summary="Remove a mask")
async def remove(parts: Parts, mask: str) -> Response:
    await parts.catalog.change(lambda connection: remove_rule(connection, mask))
    parts.masks.forget()
    return Response(status_code=204)

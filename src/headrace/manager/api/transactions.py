"""Transactions: list, describe, and abort one that its producer left open."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from headrace.client import Admin
from headrace.client.types import Outcome, TransactionDescription
from headrace.manager.parts import Parts
from headrace.manager.problems import refusal
from headrace.manager.responses import respond
from headrace.model.errors import ErrorCode

router = APIRouter(prefix="/v1/transactions", tags=["transactions"])


@dataclass(frozen=True, slots=True)
class TransactionSummary:
    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionView:
    transactional_id: str
    state: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_at_ms: int
    """-1 before the first transaction."""
    partitions: list[str]


@router.get("", response_model=list[TransactionSummary], summary="List transactional ids")
async def list_transactions(
    request: Request,
    parts: Parts,
    state: Annotated[list[str] | None, Query(max_length=20)] = None,
    open_for_ms: Annotated[
        int | None, Query(ge=0, le=2**63 - 1, description="Only transactions that are open for longer.")
    ] = None,
) -> Response:
    found = await parts.cluster.run(lambda admin: admin.transactions(states=state or (), duration_ms=open_for_ms))
    return respond(request, [TransactionSummary(*each) for each in found])


@router.get("/{transactional_id}", response_model=TransactionView, summary="Describe a transaction")
async def describe(request: Request, parts: Parts, transactional_id: str) -> Response:
    found = await parts.cluster.run(lambda admin: _existing_id(admin, transactional_id))
    view = TransactionView(
        found.transactional_id,
        found.state,
        found.coordinator,
        found.producer_id,
        found.producer_epoch,
        found.timeout_ms,
        found.started_at_ms,
        [str(part) for part in found.partitions],
    )
    return respond(request, view)


@router.post("/{transactional_id}/abort", status_code=204, summary="Abort the open transaction, and fence its producer")
async def abort(parts: Parts, transactional_id: str) -> Response:
    """The producer that has it open can write no more."""

    def aborted(admin: Admin) -> None:
        _existing_id(admin, transactional_id)
        for name, outcome in admin.fence_producers([transactional_id]).items():
            if outcome.error != ErrorCode.NONE:
                raise refusal(f'cannot abort the transaction of "{name}"', name, outcome)

    await parts.cluster.run(aborted)
    return Response(status_code=204)


def _existing_id(admin: Admin, name: str) -> TransactionDescription:
    found = admin.describe_transactions([name])[name]
    if found.error != ErrorCode.NONE:
        known = tuple(each.transactional_id for each in admin.transactions())
        raise refusal(f'transactional id "{name}" cannot be used', name, Outcome(found.error), known)
    return found

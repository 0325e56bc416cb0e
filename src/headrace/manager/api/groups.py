"""Consumer groups: list, describe, lag, reset with a preview, delete."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.client import Admin
from headrace.client.types import EARLIEST, LATEST, GroupDescription, Outcome
from headrace.manager.api.topics import existing
from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem, refusal
from headrace.manager.responses import respond
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.operations.group_lag import PartitionLag, group_lag
from headrace.operations.group_reset import (
    Move,
    ResetSelection,
    ResetTarget,
    moves,
    selected_partitions,
)
from headrace.operations.times import parse_time

router = APIRouter(prefix="/v1/groups", tags=["groups"])
DEAD, EMPTY = "Dead", "Empty"


@dataclass(frozen=True, slots=True)
class GroupSummary:
    group: str
    state: str
    type: str
    protocol_type: str


@dataclass(frozen=True, slots=True)
class MemberView:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[str]


@dataclass(frozen=True, slots=True)
class LagView:
    topic: str
    partition: int
    committed: int | None
    """Null if the group has no committed offset."""
    end: int | None
    """Null if the partition no longer exists."""
    lag: int | None
    member: str | None


@dataclass(frozen=True, slots=True)
class GroupView:
    group: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: int
    members: list[MemberView]
    partitions: list[LagView]
    lag: int
    """Records that the group has not read, in all its partitions."""


@dataclass(frozen=True, slots=True)
class MoveView:
    topic: str
    partition: int
    before: int | None
    asked: int
    after: int
    """The requested offset, limited to the offsets that exist."""


@dataclass(frozen=True, slots=True)
class ResetView:
    moves: list[MoveView]
    applied: bool


class GroupReset(BaseModel):
    """New offsets of a group: give exactly one of `to`, `time`, `offset` and `shift`."""

    model_config = ConfigDict(extra="forbid")

    to: Literal["earliest", "latest"] | None = None
    time: str | int | None = Field(None, examples=["2026-05-31T12:00:00Z", "15m"])
    offset: int | None = Field(None, ge=0, le=2**63 - 1)
    shift: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    topics: dict[str, list[int]] = Field(
        default_factory=dict, description="Partitions by topic, an empty list for all of them. Without it: all "
        "partitions with a committed offset."
    )  # fmt: skip


@router.get("", response_model=list[GroupSummary], summary="List groups")
async def list_groups(
    request: Request, parts: Parts, state: Annotated[list[str] | None, Query(max_length=20)] = None
) -> Response:
    found = await parts.cluster.run(lambda admin: admin.groups(states=state or ()))
    shown = [GroupSummary(each.group, each.state, each.type, each.protocol_type) for each in found]
    return respond(request, sorted(shown, key=lambda each: each.group))


@router.get("/{group}", response_model=GroupView, summary="Describe a group with its members and its lag")
async def describe(request: Request, parts: Parts, group: str) -> Response:
    def described(admin: Admin) -> tuple[GroupDescription, list[PartitionLag]]:
        found = _existing_group(admin, group)
        return found, group_lag(admin, found)

    found, lags = await parts.cluster.run(described)
    members = [
        MemberView(each.member_id, each.instance_id, each.client_id, each.host, [str(part) for part in each.partitions])
        for each in found.members
    ]
    total = sum(each.lag or 0 for each in lags)
    view = GroupView(
        found.group, found.state, found.protocol_type, found.protocol, found.coordinator, members, _lags(lags), total
    )
    return respond(request, view)


@router.get("/{group}/lag", response_model=list[LagView], summary="Lag of a group by partition")
async def lag(request: Request, parts: Parts, group: str) -> Response:
    found = await parts.cluster.run(lambda admin: group_lag(admin, _existing_group(admin, group)))
    return respond(request, _lags(found))


@router.post("/{group}/reset", response_model=ResetView, summary="Set the committed offsets of a group")
async def reset(
    request: Request,
    parts: Parts,
    group: str,
    wanted: GroupReset,
    dry_run: Annotated[bool, Query(description="Show the new offsets without setting them.")] = False,
) -> Response:
    """The group must have no members. With `dry_run` the moves are shown and not made."""
    target = _target(wanted)

    def applied(admin: Admin) -> Sequence[Move]:
        planned = _planned(admin, group, wanted.topics, target)
        if not dry_run:
            after = {move.partition: move.after for move in planned}
            for part, outcome in admin.commit_group_offsets(group, after).items():
                if outcome.error != ErrorCode.NONE:
                    raise refusal(f'cannot reset {part} of group "{group}"', group, outcome)
        return planned

    planned = await parts.cluster.run(applied)
    shown = [MoveView(*move.partition, move.before, move.asked, move.after) for move in planned]
    return respond(request, ResetView(shown, not dry_run))


@router.delete("/{group}", status_code=204, summary="Delete a group without members, with its committed offsets")
async def delete(parts: Parts, group: str) -> Response:
    def deleted(admin: Admin) -> None:
        _existing_group(admin, group)
        for outcome in admin.delete_groups([group]).values():
            if outcome.error != ErrorCode.NONE:
                raise refusal(f'cannot delete group "{group}"', group, outcome)

    await parts.cluster.run(deleted)
    return Response(status_code=204)


def _existing_group(admin: Admin, name: str) -> GroupDescription:
    found = admin.describe_groups([name])[name]
    error = ErrorCode.GROUP_ID_NOT_FOUND if found.state == DEAD and not found.error else found.error
    if error:
        known = tuple(each.group for each in admin.groups())
        raise refusal(f'group "{name}" cannot be used', name, Outcome(error), known)
    return found


def _planned(admin: Admin, group: str, topics: dict[str, list[int]], target: ResetTarget) -> Sequence[Move]:
    state = admin.describe_groups([group])[group].state
    if state not in (DEAD, EMPTY):
        raise ApiProblem(
            409, f'group "{group}" has members ({state}): stop them first, because they would overwrite it'
        )
    committed = {part: found.offset for part, found in admin.group_offsets(group).items()}
    partitions: list[TopicPartition] = sorted(committed)
    if topics:
        described = {name: existing(admin, name) for name in topics}
        selections = [ResetSelection(name, tuple(numbers)) for name, numbers in topics.items()]
        partitions = selected_partitions(selections, described)
    if not partitions:
        if state == DEAD:
            _existing_group(admin, group)
        raise ApiProblem(422, f'group "{group}" has no committed offsets: name its topics in "topics"')
    return moves(admin, partitions, committed, target)


def _target(wanted: GroupReset) -> ResetTarget:
    given = [each for each in (wanted.to, wanted.time, wanted.offset, wanted.shift) if each is not None]
    if len(given) != 1:
        raise ApiProblem(400, 'give exactly one of "to", "time", "offset" and "shift"')
    if wanted.time is not None:
        try:
            return ResetTarget(time=parse_time(str(wanted.time), now=datetime.now(UTC)))
        except (ValueError, OverflowError) as wrong:
            raise ApiProblem(400, str(wrong)) from None
    times = {None: None, "earliest": EARLIEST, "latest": LATEST}
    return ResetTarget(time=times[wanted.to], offset=wanted.offset, shift=wanted.shift)


def _lags(found: Sequence[PartitionLag]) -> list[LagView]:
    return [
        LagView(each.partition.topic, each.partition.partition, each.committed, each.end, each.lag, each.member or None)
        for each in found
    ]

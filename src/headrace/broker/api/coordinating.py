"""Requests that a coordinator decides: answered at once if it can, else parked until the decision is committed."""

from collections.abc import Callable, Iterable
from typing import Any

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.groups import GroupDecide
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicId

MEMBER_ID_BYTES = 16


def ask_group(
    ctx: RequestContext, group_id: str, decide: GroupDecide, respond: Callable[[Any], object]
) -> object | Parked:
    """`respond` gets what the machine answered, or a ProposalFailed."""
    return when_known(ctx, ctx.broker.groups.propose(group_id, decide), respond)


def when_known(ctx: RequestContext, proposal: Proposal[Any], respond: Callable[[Any], object]) -> object | Parked:
    if proposal.outcome is not None:
        return respond(proposal.outcome)
    parked = ctx.park()
    proposal.then(lambda outcome: parked.complete(respond(outcome)))
    return parked


class Collected:
    """The outcomes of several proposals, in the order of asking; known when the last one is."""

    def __init__(self) -> None:
        self._outcomes: list[Any] = []
        self._missing = 0
        self._closed = False
        self.all: Proposal[list[Any]] = Proposal()

    def add(self, proposal: Proposal[Any]) -> None:
        place = len(self._outcomes)
        self._outcomes.append(None)
        self._missing += 1

        def known(outcome: object) -> None:
            self._outcomes[place] = outcome
            self._missing -= 1
            self._complete()

        proposal.then(known)

    def add_known(self, outcome: object) -> None:
        self._outcomes.append(outcome)

    def close(self) -> Proposal[list[Any]]:
        """Nothing is added any more."""
        self._closed = True
        self._complete()
        return self.all

    def _complete(self) -> None:
        if self._closed and not self._missing:
            self.all.complete(self._outcomes)


def group_error(ctx: RequestContext, operation: Operation, group_id: str) -> ErrorCode:
    """NONE when the group may be asked about."""
    if not ctx.authorized(operation, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE if group_id else ErrorCode.INVALID_GROUP_ID


def ask_each_group(
    ctx: RequestContext, operation: Operation, names: Iterable[str], deciding: Callable[[str], GroupDecide]
) -> Proposal[list[Any]]:
    """An outcome for each name, in order; of a group that may not be asked about, the refusal as a ProposalFailed."""
    collected = Collected()
    for name in names:
        error = group_error(ctx, operation, name)
        if error is not ErrorCode.NONE:
            collected.add_known(ProposalFailed(error, ""))
        else:
            collected.add(ctx.broker.groups.propose(name, deciding(name)))
    return collected.close()


def error_of(outcome: object) -> ErrorCode:
    return outcome.code if isinstance(outcome, ProposalFailed) else ErrorCode.NONE


def topic_name(ctx: RequestContext, name: str, topic_id: bytes) -> str | None:
    """The topic a request means, by id where it gives one; None if there is no topic with that id."""
    if topic_id == NO_TOPIC_ID:
        return name
    topic = ctx.broker.image.topics_by_id.get(TopicId(topic_id))
    return None if topic is None else topic.name


def drawn_id(ctx: RequestContext) -> str:
    """For a new member, in the form of a UUID, as tools show it."""
    drawn = ctx.broker.entropy.random_bytes(MEMBER_ID_BYTES).hex()
    return "-".join((drawn[:8], drawn[8:12], drawn[12:16], drawn[16:20], drawn[20:]))

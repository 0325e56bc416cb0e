"""Requests that a coordinator decides: answered at once if it can, else parked until the decision is committed."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.groups import GroupDecide
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicId

Item = TypeVar("Item")
Result = TypeVar("Result")

MEMBER_ID_BYTES = 16

ASKED_PER_TURN = 100
"""Questions that one request may put to coordinators in one turn."""


def ask_group(
    ctx: RequestContext, group_id: str, decide: GroupDecide, respond: Callable[[Any], object]
) -> object | Parked:
    """`respond` gets what the machine answered, or a ProposalFailed."""
    return when_known(ctx, ctx.groups.propose(group_id, decide), respond)


def when_known(ctx: RequestContext, proposal: Proposal[Any], respond: Callable[[Any], object]) -> object | Parked:
    if proposal.outcome is not None:
        return respond(proposal.outcome)
    parked = ctx.park()
    proposal.then(lambda outcome: parked.complete(respond(outcome)))
    return parked


def ask_each(
    ctx: RequestContext,
    items: Sequence[Item],
    ask: Callable[[Item], Proposal[Any]],
    told: Callable[[Item, Any], Result],
    respond: Callable[[list[Result]], object],
) -> object | Parked:
    """Ask about each item, some of them a turn, and respond with what is `told` of each, in their order."""
    asking = _Asking(ctx, items, ask, told)
    asking.step()
    if not asking.missing:
        return respond(asking.results)
    parked = ctx.park()
    asking.when_known = lambda: parked.complete(respond(asking.results))
    return parked


class _Asking(Generic[Item, Result]):
    def __init__(
        self,
        ctx: RequestContext,
        items: Sequence[Item],
        ask: Callable[[Item], Proposal[Any]],
        told: Callable[[Item, Any], Result],
    ) -> None:
        self._timers = ctx.timers
        self._items = items
        self._ask = ask
        self._told = told
        self._asked = 0
        self._results: list[Result | None] = [None] * len(items)
        self.missing = len(items)
        self.when_known: Callable[[], None] = lambda: None

    @property
    def results(self) -> list[Result]:
        return cast(list[Result], self._results)

    def step(self) -> None:
        begin, self._asked = self._asked, min(self._asked + ASKED_PER_TURN, len(self._items))
        for place in range(begin, self._asked):
            self._ask(self._items[place]).then(partial(self._known, place))
        if self._asked < len(self._items):
            self._timers.next_turn(self.step)

    def _known(self, place: int, outcome: object) -> None:
        self._results[place] = self._told(self._items[place], outcome)
        self.missing -= 1
        if not self.missing:
            self.when_known()


def known(outcome: Any) -> Proposal[Any]:
    """For an item about which nobody need be asked."""
    proposal: Proposal[Any] = Proposal()
    proposal.complete(outcome)
    return proposal


def group_error(ctx: RequestContext, operation: Operation, group_id: str) -> ErrorCode:
    """NONE when the group may be asked about."""
    if not ctx.authorized(operation, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE if group_id else ErrorCode.INVALID_GROUP_ID


def ask_each_group(
    ctx: RequestContext,
    operation: Operation,
    names: Sequence[str],
    deciding: Callable[[str], GroupDecide],
    told: Callable[[str, Any], Result],
    respond: Callable[[list[Result]], object],
) -> object | Parked:
    """As `ask_each`; of a group that may not be asked about, the refusal as a ProposalFailed is what is known."""

    def ask(name: str) -> Proposal[Any]:
        error = group_error(ctx, operation, name)
        if error is not ErrorCode.NONE:
            return known(ProposalFailed(error, ""))
        return ctx.groups.propose(name, deciding(name))

    return ask_each(ctx, names, ask, told, respond)


def error_of(outcome: object) -> ErrorCode:
    return outcome.code if isinstance(outcome, ProposalFailed) else ErrorCode.NONE


def topic_name(ctx: RequestContext, name: str, topic_id: bytes) -> str | None:
    """The topic a request means, by id where it gives one; None if there is no topic with that id."""
    if topic_id == NO_TOPIC_ID:
        return name
    topic = ctx.image.topics_by_id.get(TopicId(topic_id))
    return None if topic is None else topic.name


def drawn_id(ctx: RequestContext) -> str:
    """For a new member, in the form of a UUID, as tools show it."""
    drawn = ctx.entropy.random_bytes(MEMBER_ID_BYTES).hex()
    return "-".join((drawn[:8], drawn[8:12], drawn[12:16], drawn[16:20], drawn[20:]))

"""Requests that a coordinator decides: respond at once if the decision is known, else park until it is committed."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicId

Item = TypeVar("Item")
Result = TypeVar("Result")

UUID_BYTES = 16

ASKED_PER_TURN = 100
"""Items of one request that the broker passes to coordinators in one turn."""


def when_known(ctx: RequestContext, proposal: Proposal[Any], respond: Callable[[Any], object]) -> object | Parked:
    """Respond with the outcome of a proposal: `respond` gets the coordinator's result, or a ProposalFailed."""
    if proposal.outcome is not None:
        return respond(proposal.outcome)
    parked = ctx.park()
    proposal.then(lambda outcome: parked.complete(respond(outcome)))
    return parked


def ask_each(
    ctx: RequestContext,
    items: Sequence[Item],
    ask: Callable[[Item], Proposal[Any]],
    result_of: Callable[[Item, Any], Result],
    respond: Callable[[list[Result]], object],
    *,
    items_max: int | None = None,
) -> object | Parked:
    """Make a proposal for each item, a limited number per turn, and respond when all outcomes are known.

    `result_of` turns an item and its outcome into a result; `respond` gets the results in the order of the items.
    The outcome of items beyond `items_max` is a ProposalFailed with INVALID_REQUEST.
    """
    proposals = _Proposals(ctx, items, ask, result_of, items_max)
    proposals.step()
    if not proposals.missing:
        return respond(proposals.results)
    parked = ctx.park()
    proposals.when_known = lambda: parked.complete(respond(proposals.results))
    return parked


def when_each_known(
    ctx: RequestContext,
    items: Sequence[Item],
    ask: Callable[[Item], Proposal[Any]],
    result_of: Callable[[Item, Any], Result],
    call: Callable[[list[Result]], None],
    *,
    items_max: int | None = None,
) -> None:
    """Do as `ask_each` does for a request that is parked already: `call` gets the results."""
    proposals = _Proposals(ctx, items, ask, result_of, items_max)
    if not items:
        call([])
        return
    proposals.when_known = lambda: call(proposals.results)
    proposals.step()


class _Proposals(Generic[Item, Result]):
    def __init__(
        self,
        ctx: RequestContext,
        items: Sequence[Item],
        ask: Callable[[Item], Proposal[Any]],
        result_of: Callable[[Item, Any], Result],
        items_max: int | None,
    ) -> None:
        self._timers = ctx.timers
        self._items = items
        self._ask = ask
        self._result_of = result_of
        self._items_max = len(items) if items_max is None else items_max
        self._asked = 0
        self._results: list[Result | None] = [None] * len(items)
        self.missing = len(items)
        self.when_known: Callable[[], None] = lambda: None

    @property
    def results(self) -> list[Result]:
        return cast(list[Result], self._results)

    def step(self) -> None:
        begin, self._asked = self._asked, min(self._asked + ASKED_PER_TURN, len(self._items))
        for index in range(begin, self._asked):
            if index < self._items_max:
                self._ask(self._items[index]).then(partial(self._known, index))
            else:
                self._known(index, _too_many(self._items_max))
        if self._asked < len(self._items):
            self._timers.next_turn(self.step)

    def _known(self, index: int, outcome: object) -> None:
        self._results[index] = self._result_of(self._items[index], outcome)
        self.missing -= 1
        if not self.missing:
            self.when_known()


def _too_many(items_max: int) -> ProposalFailed:
    """Return the outcome of an item beyond the limit of its request."""
    return ProposalFailed(ErrorCode.INVALID_REQUEST, f"only the first {items_max} are answered: use several requests")


def known(outcome: Any) -> Proposal[Any]:
    """Return a completed proposal, for an item that no coordinator needs to decide."""
    proposal: Proposal[Any] = Proposal()
    proposal.complete(outcome)
    return proposal


def group_error(ctx: RequestContext, operation: Operation, group_id: str) -> ErrorCode:
    """Check the authorization for a group and its id; NONE if the request may proceed."""
    if not ctx.authorized(operation, AclResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE if group_id else ErrorCode.INVALID_GROUP_ID


def ask_each_group(
    ctx: RequestContext,
    operation: Operation,
    names: Sequence[str],
    ask: Callable[[str], Proposal[Any]],
    result_of: Callable[[str, Any], Result],
    respond: Callable[[list[Result]], object],
    *,
    items_max: int | None = None,
) -> object | Parked:
    """Do as `ask_each` does; the outcome for a group that the sender may not access is a ProposalFailed."""

    def ask_if_allowed(name: str) -> Proposal[Any]:
        error = group_error(ctx, operation, name)
        return ask(name) if error is ErrorCode.NONE else known(ProposalFailed(error, ""))

    return ask_each(ctx, names, ask_if_allowed, result_of, respond, items_max=items_max)


def topic_name(ctx: RequestContext, name: str, topic_id: bytes) -> str | None:
    """Return the name of the topic that a request gives by name or id; None if no topic has the id."""
    if topic_id == NO_TOPIC_ID:
        return name
    topic = ctx.image.topics_by_id.get(TopicId(topic_id))
    return None if topic is None else topic.name


def random_uuid(ctx: RequestContext) -> str:
    """Return random bytes in the form of a UUID, for the id of a new member."""
    digits = ctx.entropy.random_bytes(UUID_BYTES).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

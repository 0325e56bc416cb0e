"""Responses of many items, built a slice per turn so that no request blocks the others."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from headrace.broker.api.context import Parked, RequestContext

Item = TypeVar("Item")
Result = TypeVar("Result")
Response = TypeVar("Response")


def respond_in_slices(
    ctx: RequestContext,
    items: Sequence[Item],
    describe: Callable[[Item], Result],
    respond: Callable[[list[Result]], Response],
    *,
    per_slice: int,
) -> Response | Parked:
    """Describe every item and respond with all; at once if they fit into one slice, otherwise over several turns."""
    if len(items) <= per_slice:
        return respond([describe(item) for item in items])
    parked = ctx.park()
    results: list[Result] = []

    def step() -> None:
        if parked.abandoned():
            return
        results.extend(describe(item) for item in items[len(results) : len(results) + per_slice])
        if len(results) < len(items):
            ctx.next_turn(step)
        else:
            parked.complete(respond(results))

    step()
    return parked

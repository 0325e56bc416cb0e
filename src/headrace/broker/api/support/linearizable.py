"""Responses that show every change of metadata which was acknowledged before their request."""

from collections.abc import Callable
from typing import TypeVar

from headrace.broker.api.context import Parked, RequestContext

Response = TypeVar("Response")

NOT_CONFIRMED = "no active controller confirmed in time that the metadata of this broker is current; try again"


def respond_when_confirmed(
    ctx: RequestContext, respond: Callable[[], Response | Parked], refuse: Callable[[], Response]
) -> Parked:
    """Respond from the image once the active controller has confirmed the read; refuse if it does not in time."""
    waiting = ctx.park()

    def ended(is_confirmed: bool) -> None:
        if waiting.abandoned():
            return
        waiting.give_up()
        response = respond() if is_confirmed else refuse()
        if not isinstance(response, Parked):
            ctx.respond(response)

    ctx.linearizable_reads.confirm(ended)
    return waiting

"""Collects one response from many results, some of which come in later turns."""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from headrace.broker.api.context import Parked, RequestContext

Result = TypeVar("Result")
Response = TypeVar("Response")


class ResultCollector(Generic[Result]):
    """Results in the order of the request; the response is sent when the last one is there."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._results: list[Result | None] = []
        self._missing = 0
        self._parked: Parked | None = None
        self._respond: Callable[[list[Result]], object] | None = None

    def add(self, result: Result) -> None:
        self._results.append(result)

    def later(self) -> Callable[[Result], None]:
        """Reserve the next slot for a result of a later turn, and return the function to call with it."""
        index = len(self._results)
        self._results.append(None)
        self._missing += 1

        def fill(result: Result) -> None:
            self._results[index] = result
            self._missing -= 1
            if not self._missing and self._parked is not None and not self._parked.abandoned():
                assert self._respond is not None
                self._parked.complete(self._respond(cast(list[Result], self._results)))

        return fill

    def response(self, respond: Callable[[list[Result]], Response]) -> Response | Parked:
        """Return the response, or the parked request that gets it."""
        if not self._missing:
            return respond(cast(list[Result], self._results))
        self._respond = respond
        self._parked = self._ctx.park()
        return self._parked

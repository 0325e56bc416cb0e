"""One response from many results, some of which a helper has to look up first."""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from headrace.broker.api.context import Parked, RequestContext

Result = TypeVar("Result")
Found = TypeVar("Found")


class Gathering(Generic[Result]):
    """Results keep the order in which they were asked for; the answer leaves when the last one is there."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._results: list[Result | None] = []
        self._missing = 0
        self._parked: Parked | None = None
        self._respond: Callable[[list[Result]], object] | None = None

    def add(self, result: Result) -> None:
        self._results.append(result)

    def add_later(
        self,
        operation: Callable[[], Found],
        result_of: Callable[[Found | None, BaseException | None], Result],
        *,
        repeated: Callable[[], Callable[[], Found] | None] = lambda: None,
    ) -> None:
        """Run `operation` away from the loop; `result_of` makes the result of what it gave or raised.

        `repeated` is asked first: if what the operation relied on has changed, it gives the operation to run instead.
        """
        place = len(self._results)
        self._results.append(None)
        self._missing += 1

        def completed(found: Found | None, error: BaseException | None) -> None:
            again = repeated()
            if again is not None:
                self._ctx.broker.spawner.submit(again, completed)
                return
            self._results[place] = result_of(found, error)
            self._missing -= 1
            if not self._missing and self._parked is not None:
                assert self._respond is not None
                self._parked.complete(self._respond(cast(list[Result], self._results)))

        self._ctx.broker.spawner.submit(operation, completed)

    def response(self, respond: Callable[[list[Result]], Found]) -> Found | Parked:
        """The response, or the place it will be put in."""
        if not self._missing:
            return respond(cast(list[Result], self._results))
        self._respond = respond
        self._parked = self._ctx.park()
        return self._parked

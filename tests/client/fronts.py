"""The fronts of the client behind one set of calls, so that the same tests run with each.

The asyncio front runs on a loop in a thread of its own; what a test calls is awaited there.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Self

import headrace
import headrace.aio
from headrace.client.aio.producer import Delivery as AwaitedDelivery
from headrace.client.aio.producer import Transaction as AwaitedTransaction
from headrace.client.errors import DeadlineExceeded

from .loop_front import LoopFront

CALL_S_MAX = 60
NAMES = ("Admin", "Consumer", "Producer")


class BlockingFront:
    name = "blocking"
    Admin, Consumer, Producer = headrace.Admin, headrace.Consumer, headrace.Producer

    def close(self) -> None:
        """Nothing runs."""


class AsyncioFront:
    name = "asyncio"

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="asyncio-front")
        self._thread.start()

    def Admin(self, *arguments: Any, **options: Any) -> "Awaited":
        return Awaited(self, self.call(headrace.aio.Admin, *arguments, **options))

    def Consumer(self, *arguments: Any, **options: Any) -> "Awaited":
        return Awaited(self, self.call(headrace.aio.Consumer, *arguments, **options))

    def Producer(self, *arguments: Any, **options: Any) -> "Awaited":
        return Awaited(self, self.call(headrace.aio.Producer, *arguments, **options))

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call it in the loop, and wait for what it gives."""

        async def run() -> Any:
            outcome = function(*arguments, **options)
            return await outcome if isinstance(outcome, Coroutine) else outcome

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(CALL_S_MAX)

    def close(self) -> None:
        async def shut_down() -> None:
            assert asyncio.all_tasks() == {asyncio.current_task()}, "clients leave no tasks behind"
            await self._loop.shutdown_asyncgens()
            await self._loop.shutdown_default_executor()

        self.call(shut_down)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


Front = BlockingFront | AsyncioFront | LoopFront
WAITING_FRONTS = (BlockingFront, AsyncioFront)
EVERY_FRONT = (*WAITING_FRONTS, LoopFront)
"""For modules that set `FRONTS` to it: with the front for another program's loop, which has fewer operations."""


class Awaited:
    """A client, or a transaction of one, whose coroutines are awaited for the caller."""

    def __init__(self, front: AsyncioFront, target: Any) -> None:
        self._front = front
        self._target = target
        self._stream: Any = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        return (lambda *a, **o: self._shown(self._front.call(found, *a, **o))) if inspect.ismethod(found) else found

    def __repr__(self) -> str:
        return repr(self._target)

    def transaction(self) -> Any:
        """Begun at once, as that of the blocking front."""
        return self._shown(self._front.call(self._target.begin_transaction))

    def subscribe(self, *topics: Any, **options: Any) -> None:
        """Callbacks become coroutines that call in a thread of their own, from where the loop can be waited for."""
        wrapped = {name: _awaited(option) if callable(option) else option for name, option in options.items()}
        self._front.call(self._target.subscribe, *topics, **wrapped)

    def _shown(self, outcome: Any) -> Any:
        if isinstance(outcome, AwaitedDelivery):
            return Delivery(self._front, outcome)
        if isinstance(outcome, AwaitedTransaction):
            return Awaited(self._front, outcome)
        return self._each(outcome) if inspect.isasyncgen(outcome) else outcome

    def _each(self, stream: Any) -> Iterator[Any]:
        while True:
            try:
                yield self._front.call(stream.__anext__)
            except StopAsyncIteration:
                return

    def __enter__(self) -> Self:
        self._front.call(self._target.__aenter__)
        return self

    def __exit__(self, *exception: object) -> None:
        self._front.call(self._target.__aexit__, *exception)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._stream is None:
            self._stream = self._front.call(self._target.__aiter__)
        try:
            return self._front.call(self._stream.__anext__)
        except StopAsyncIteration:
            self._stream = None
            raise StopIteration from None
        except BaseException:
            self._stream = None
            raise


def _awaited(callback: Callable[[Any], object]) -> Callable[[Any], Coroutine[Any, Any, object]]:
    async def told(partitions: Any) -> object:
        return await asyncio.to_thread(callback, partitions)

    return told


class Delivery:
    def __init__(self, front: AsyncioFront, delivery: AwaitedDelivery) -> None:
        self._front = front
        self._delivery = delivery

    def __repr__(self) -> str:
        return repr(self._delivery)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._delivery, name)

    def result(self, timeout_ms: float = CALL_S_MAX * 1000) -> Any:
        async def wait() -> Any:
            try:
                async with asyncio.timeout(timeout_ms / 1000) as limit:
                    return await self._delivery
            except TimeoutError:
                if not limit.expired():
                    raise  # It is what became of the record.
                raise DeadlineExceeded("the record is not delivered yet") from None

        return self._delivery.result() if self._delivery.done() else self._front.call(wait)

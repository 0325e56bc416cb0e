"""Handlers for topics, in the manner of web frameworks: a decorated function is called with each message's value.

    python handlers.py 127.0.0.1:9092

A message is committed when its handler has returned; one that keeps failing goes to a topic of its own.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from headrace.aio import Consumer, Producer

Handler = Callable[[Any], Awaitable[Any]]
ATTEMPTS_MAX = 3


class Application:
    """Topics and the functions that take their messages; what a function returns goes to its result topic."""

    def __init__(self, bootstrap_servers: str, *, group_id: str) -> None:
        self._servers = bootstrap_servers
        self._group_id = group_id
        self._handlers: dict[str, tuple[Handler, str | None]] = {}

    def on(self, topic: str, *, to: str | None = None) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            self._handlers[topic] = (handler, to)
            return handler

        return register

    async def run(self) -> None:
        async with (
            Producer(self._servers, value_serializer="json") as producer,
            Consumer(
                *self._handlers,
                bootstrap_servers=self._servers,
                group_id=self._group_id,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer,
        ):
            async for record in consumer:
                handler, to = self._handlers[record.topic]
                await self._handle(producer, handler, to, record)
                await consumer.commit(record)

    async def _handle(self, producer: Producer, handler: Handler, to: str | None, record: Any) -> None:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                result = await handler(json.loads(record.value))  # here, so that what is no JSON is put aside as well
            except Exception as error:
                if attempt == ATTEMPTS_MAX:
                    failed = {"value": (record.value or b"").decode(errors="replace"), "error": repr(error)}
                    await producer.send_and_wait(f"{record.topic}.failed", failed)
            else:
                if to is not None:
                    await producer.send_and_wait(to, result)
                return


def make_application(bootstrap_servers: str) -> Application:
    application = Application(bootstrap_servers, group_id="billing")

    @application.on("orders", to="invoices")
    async def bill(order: dict[str, Any]) -> dict[str, Any]:
        return {"customer": order["customer"], "cents": order["count"] * order["price_cents"]}

    return application


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python handlers.py HOST:PORT")
    with suppress(KeyboardInterrupt):
        asyncio.run(make_application(sys.argv[1]).run())

"""Consumers of the manager: one for each request that reads, without a group."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from headrace.client.aio.consumer import Consumer
from headrace.client.errors import ClientError
from headrace.manager.cluster_address import ClusterAddress
from headrace.manager.limits import READ_FETCH_BYTES_MAX, READER_WAIT_SECONDS_MAX, READERS_MAX
from headrace.manager.problems import ApiProblem

REQUEST_TIMEOUT_MS = 10_000


class Readers:
    def __init__(self, cluster: ClusterAddress) -> None:
        self._cluster = cluster
        self._places = asyncio.Semaphore(READERS_MAX)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Consumer[bytes | None]]:
        """Lend a consumer that reads nothing yet.

        It is not used again: a fetch of the previous request, which the broker still holds, would delay the next one.
        """
        try:
            async with asyncio.timeout(READER_WAIT_SECONDS_MAX):
                await self._places.acquire()
        except TimeoutError:
            raise ApiProblem(503, f"{READERS_MAX} requests read records already: try again in a moment") from None
        try:
            consumer = self.create()
            try:
                yield consumer
            finally:
                await close_consumer(consumer)
        finally:
            self._places.release()

    def create(self) -> Consumer[bytes | None]:
        return Consumer(
            **self._cluster.options(),
            auto_offset_reset="none",
            unknown_topics="raise",
            allow_auto_create_topics=False,
            isolation_level="read_committed",
            fetch_max_bytes=READ_FETCH_BYTES_MAX,
            max_partition_fetch_bytes=READ_FETCH_BYTES_MAX // 4,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            enable_auto_commit=False,
        )


async def close_consumer(consumer: Consumer[Any]) -> None:
    """Close a consumer that is not used again; the broker forgets it with its connection in any case."""
    with suppress(ClientError):
        await consumer.close()

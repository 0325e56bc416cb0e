"""The asyncio front: the methods of the blocking client as coroutines, in threads."""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from headrace.http.blocking import TIMEOUT_MS, ManagerClient


class AsyncManagerClient:
    """Sends requests to the managers of a cluster, at most as many at a time as the loop's executor has threads."""

    def __init__(
        self, *urls: str, token: str | None = None, ca_file: str | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        self._client = ManagerClient(*urls, token=token, ca_file=ca_file, timeout_ms=timeout_ms)

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the JSON of the response, as `ManagerClient.call` does."""
        return await asyncio.to_thread(self._client.call, method, path, body, params=params, headers=headers)

    async def produce(
        self, topic: str, records: Sequence[Mapping[str, object]], *, key: str | None = None
    ) -> list[dict[str, int]]:
        """Store records exactly once, and return their positions."""
        return await asyncio.to_thread(self._client.produce, topic, records, key=key)

    async def close(self) -> None:
        self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

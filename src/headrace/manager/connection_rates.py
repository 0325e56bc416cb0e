"""The clients of all brokers with their rates, computed from two samples that requests share."""

import asyncio
import time
from typing import NamedTuple

from headrace.client.types import ClientConnection
from headrace.manager.cluster_calls import ClusterCalls
from headrace.manager.limits import CONNECTION_RATE_SECONDS, CONNECTION_RATE_SECONDS_MAX


class ConnectionRates(NamedTuple):
    connection: ClientConnection
    bytes_in_per_second: float
    bytes_out_per_second: float


class _Sample(NamedTuple):
    at_seconds: float
    found: tuple[ClientConnection, ...]
    bytes: dict[tuple[int, int, str], tuple[int, int]]
    """Bytes in and out of each connection, by broker, number and address."""


class ClientSamples:
    """Keeps the last two samples. A request samples again if the last one is older than CONNECTION_RATE_SECONDS."""

    def __init__(self, cluster: ClusterCalls) -> None:
        self._cluster = cluster
        self._turn = asyncio.Lock()
        self._before: _Sample | None = None
        self._last: _Sample | None = None

    async def rates(self) -> list[ConnectionRates]:
        async with self._turn:
            if self._last is None or time.monotonic() - self._last.at_seconds > CONNECTION_RATE_SECONDS_MAX:
                self._last, self._before = await self._taken(), None
            if self._before is None or time.monotonic() - self._last.at_seconds >= CONNECTION_RATE_SECONDS:
                await asyncio.sleep(max(0.0, self._last.at_seconds + CONNECTION_RATE_SECONDS - time.monotonic()))
                self._last, self._before = await self._taken(), self._last
            return _rates(self._before, self._last)

    async def _taken(self) -> _Sample:
        found = await self._cluster.run(lambda admin: admin.connections())
        counts = {_key(each): (each.bytes_in, each.bytes_out) for each in found}
        return _Sample(time.monotonic(), found, counts)


def _rates(before: _Sample, now: _Sample) -> list[ConnectionRates]:
    seconds = now.at_seconds - before.at_seconds
    found = []
    for each in now.found:
        earlier_in, earlier_out = before.bytes.get(_key(each), (0, 0))
        age_seconds = max(min(seconds, each.connected_ms / 1000), CONNECTION_RATE_SECONDS)
        found.append(
            ConnectionRates(
                each,
                max(each.bytes_in - earlier_in, 0) / age_seconds,
                max(each.bytes_out - earlier_out, 0) / age_seconds,
            )
        )
    return found


def _key(connection: ClientConnection) -> tuple[int, int, str]:
    return connection.node_id, connection.connection_id, connection.address

"""The recorder of history: the holder of the lease measures the cluster once a minute."""

import asyncio
import logging

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.history import MINUTE_MS, Measured, forget_old, record_minute
from headrace.manager.cluster_calls import ClusterCalls
from headrace.manager.problems import ApiProblem
from headrace.operations.top_samples import take_sample

logger = logging.getLogger("headrace.manager")
FORGETTING_MINUTES = 60
"""Interval at which old history and audit records are deleted."""


class HistoryRecorder:
    def __init__(self, catalog: Catalog, cluster: ClusterCalls) -> None:
        self._catalog = catalog
        self._cluster = cluster
        self._before: Measured | None = None
        self._minutes = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(MINUTE_MS / 1_000)
            if self._catalog.standing.epoch is None:
                self._before = None
            else:
                await self.record()

    async def record(self) -> None:
        """Store what has changed since the previous call; the first one only measures."""
        try:
            before, after = self._before, await self._cluster.run(measure)
            self._before = after
            if before is not None:
                known = before
                await self._catalog.change(lambda connection: record_minute(connection, known, after))
            if self._minutes % FORGETTING_MINUTES == 0:
                await self._catalog.change(forget_old)
            self._minutes += 1
        except (ApiProblem, ClientError) as error:
            self._before = None
            logger.info("no history of this minute: %s", error)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def measure(admin: Admin) -> Measured:
    sample = take_sample(admin, None, with_internal=False)
    return Measured(sample.ends, {name: group.committed for name, group in sample.groups.items()})

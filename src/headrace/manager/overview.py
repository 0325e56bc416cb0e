"""The state of the overview page. The cluster is sampled only while pages ask for it, once for all of them."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.manager.cluster_calls import ClusterCalls
from headrace.manager.limits import OVERVIEW_RATES_KEPT, OVERVIEW_SAMPLE_SECONDS, OVERVIEW_SAMPLE_SECONDS_MAX
from headrace.manager.problems import ApiProblem, problem_of
from headrace.operations.cluster_health import ClusterStatus, cluster_status
from headrace.operations.errors import OperationError
from headrace.operations.top_samples import Sample, View, take_sample, view_of


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewState:
    status: ClusterStatus | None = None
    """None if the cluster cannot be reached; then `problem` says why."""
    view: View | None = None
    problem: str = ""
    has_rates: bool = False
    """False until there are two samples."""
    written: Sequence[float] = ()
    """Records per second that the topics of the view got, oldest first."""


class Overview:
    """Keeps the last state for OVERVIEW_SAMPLE_SECONDS, however many pages ask."""

    def __init__(self, cluster: ClusterCalls) -> None:
        self._cluster = cluster
        self._turn = asyncio.Lock()
        self._state = OverviewState()
        self._taken_at_s: float | None = None
        self._sample: Sample | None = None
        self._written: deque[float] = deque(maxlen=OVERVIEW_RATES_KEPT)

    async def state(self) -> OverviewState:
        async with self._turn:
            now_s = time.monotonic()
            if self._taken_at_s is None or now_s - self._taken_at_s >= OVERVIEW_SAMPLE_SECONDS:
                self._state = await self._taken()
                self._taken_at_s = time.monotonic()
            return self._state

    async def _taken(self) -> OverviewState:
        try:
            status, sample = await self._cluster.run(_status_and_sample)
        except (ClientError, OperationError, ApiProblem) as error:
            self._sample = None
            problem = problem_of(error)
            assert problem is not None
            return OverviewState(problem=problem.detail)
        before, self._sample = self._sample, sample
        if before is not None and sample.at_seconds - before.at_seconds > OVERVIEW_SAMPLE_SECONDS_MAX:
            before = None
        if before is None:
            self._written.clear()
            return OverviewState(status=status, view=view_of(sample, sample))
        view = view_of(before, sample)
        self._written.append(sum(row.in_per_second for row in view.topics))
        return OverviewState(status=status, view=view, has_rates=True, written=tuple(self._written))


def _status_and_sample(admin: Admin) -> tuple[ClusterStatus, Sample]:
    return cluster_status(admin), take_sample(admin, None, with_internal=False)

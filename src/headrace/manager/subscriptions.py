"""WebSocket subscriptions: records are sent as far as the client has given credit for them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from headrace.client.types import ConsumerRecord
from headrace.manager.event_streams import RecordStream, positions_text
from headrace.manager.limits import CREDIT_MAX, SUBSCRIPTION_FRAME_BYTES_MAX, SUBSCRIPTION_FRAME_RECORDS_MAX
from headrace.manager.metrics import ManagerMetrics
from headrace.manager.problems import ApiProblem, problem_of
from headrace.manager.reads import ReadPlan
from headrace.manager.record_views import View
from headrace.manager.responses import as_json

SendFrame = Callable[[Mapping[str, object]], Awaitable[None]]


class Subscription:
    """Sends the records of one stream; it stops reading while it has no credit."""

    def __init__(
        self, id: str, stream: RecordStream, plan: ReadPlan, view: View, *, metrics: ManagerMetrics, send: SendFrame
    ) -> None:
        self._id = id
        self._stream = stream
        self._matches = plan.matches
        self._view = view
        self._metrics = metrics
        self._send = send
        self._credit = 0
        self._has_credit = asyncio.Event()
        self._sent: deque[tuple[int, int]] = deque(maxlen=CREDIT_MAX)
        """Partition and offset of records that are not acknowledged."""
        self.task: asyncio.Task[None] | None = None

    def start(self, ended: Callable[[], object]) -> None:
        self.task = asyncio.create_task(self._run())
        self.task.add_done_callback(lambda _task: ended())

    def give_credit(self, count: int) -> None:
        if self._credit + count > CREDIT_MAX:
            raise ApiProblem(
                400, f"a subscription has at most {CREDIT_MAX} credit, and this one has {self._credit} left: give less"
            )
        self._credit += count
        if self._credit:
            self._has_credit.set()

    def acknowledge(self, positions: Mapping[int, int]) -> None:
        """Take the credit of the records below the positions back; of records that were not sent there is none."""
        waiting = [sent for sent in self._sent if sent[1] >= positions.get(sent[0], 0)]
        acknowledged = len(self._sent) - len(waiting)
        self._sent.clear()
        self._sent.extend(waiting)
        self.give_credit(min(acknowledged, CREDIT_MAX - self._credit))

    async def _run(self) -> None:
        batches = self._stream.batches()
        try:
            has_begun = False
            async for records in batches:
                if not has_begun:
                    has_begun = True
                    await self._send({"type": "subscribed", "id": self._id, "positions": self._positions()})
                await self._send_records(records)
            await self._send({"type": "ended", "id": self._id, "positions": self._positions()})
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            await self._send(problem_frame(problem, self._id))
        finally:
            await batches.aclose()

    async def _send_records(self, records: list[ConsumerRecord]) -> None:
        chosen: list[dict[str, object]] = []
        size = 0
        for record in records:
            if self._matches is None or self._matches(record):
                if not self._credit:
                    await self._flush(chosen)
                    chosen, size = [], 0
                    await self._wait_for_credit()
                self._credit -= 1
                self._sent.append((record.partition, record.offset))
                chosen.append(self._view(record))
                size += len(record.key or b"") + len(record.value or b"")
            self._stream.next[record.partition] = record.offset + 1
            if len(chosen) >= SUBSCRIPTION_FRAME_RECORDS_MAX or size >= SUBSCRIPTION_FRAME_BYTES_MAX:
                await self._flush(chosen)
                chosen, size = [], 0
        await self._flush(chosen)

    async def _wait_for_credit(self) -> None:
        while not self._credit:
            self._has_credit.clear()
            await self._has_credit.wait()

    async def _flush(self, chosen: list[dict[str, object]]) -> None:
        if chosen:
            self._metrics.records_consumed += len(chosen)
            await self._send({"type": "records", "id": self._id, "records": chosen, "positions": self._positions()})

    def _positions(self) -> str:
        return positions_text(self._stream.next)


def problem_frame(problem: ApiProblem, id: str | None = None) -> dict[str, object]:
    frame: dict[str, object] = {"type": "problem", "status": problem.status, "detail": problem.detail}
    return frame if id is None else {**frame, "id": id}


def encoded_frame(frame: Mapping[str, object]) -> str:
    return as_json(frame).decode()

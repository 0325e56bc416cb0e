"""A consumer of committed records: it skips aborted ones, and must never see those of open transactions."""

from collections.abc import Sequence
from typing import Any

from headrace.model.errors import ErrorCode
from headrace.sim.checkers.history import Histories, PartitionHistory, SentBatch
from headrace.sim.checkers.transactions import ALL_OR_NOTHING
from headrace.sim.checkers.violation import require
from headrace.sim.context import RunContext
from headrace.sim.workloads import transaction_requests as requests
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.producers import HONEST_ERRORS
from headrace.wire.apis import ApiKey

REREAD_ONE_IN = 10
PAUSE_MS_MAX = 400
WAIT_MS = 300
BYTES_MAX = (400, 4_000, 1 << 20)


def committed_batches(
    histories: Histories, partition: PartitionHistory, part: Any, offset: int
) -> tuple[list[SentBatch], int]:
    """Return the batches that a reader gets from a response, filtered as clients do, and the next offset."""
    _, end = histories.show(
        partition,
        bytes(part.records),
        offset=offset,
        high_watermark=part.high_watermark,
        sync_level=partition.topic.sync_level,
    )
    detail = f"{partition}: shown up to {end}, but the last stable offset is {part.last_stable_offset}"
    require(end <= max(part.last_stable_offset, offset), ALL_OR_NOTHING, detail)
    coming = sorted((each.first_offset, each.producer_id) for each in part.aborted_transactions or ())
    aborting: set[int] = set()
    found = []
    for base_offset, end_offset, batch, producer in histories.batches_in(partition, bytes(part.records)):
        while coming and coming[0][0] < end_offset:
            aborting.add(coming.pop(0)[1])
        if batch is None:
            aborting.discard(producer.producer_id)
        elif batch.transaction is not None and producer.producer_id not in aborting and base_offset >= offset:
            batch.transaction.shown(batch)
            found.append(batch)
    return found, end


class CommittedReader(Client):
    def __init__(self, context: RunContext, name: str, targets: Sequence[PartitionHistory]) -> None:
        super().__init__(context, name)
        self._targets = targets
        self._positions: dict[PartitionHistory, int] = {}
        self._losses: dict[PartitionHistory, int] = {}
        self._waits = False
        self._next_ms = 0.0
        self._read = self._read_before = 0

    def lost(self) -> None:
        self._waits = False

    def hurry(self) -> None:
        self._read_before = self._read

    def has_progressed(self) -> bool:
        return self._read > self._read_before

    def _is_behind_a_loss(self, partition: PartitionHistory) -> bool:
        """Return whether a power cut removed unsynced markers or aborted records since the last request."""
        is_fresh = partition.losses != self._losses.get(partition, 0)
        self._losses[partition] = partition.losses
        return is_fresh

    def work(self) -> None:
        targets = self._targets
        if self._waits or self.now_ms < self._next_ms or not targets:
            return
        partition = targets[self.entropy.below(len(targets))]
        if self.entropy.one_in(REREAD_ONE_IN):
            self._positions[partition] = self.entropy.below(self._positions.get(partition, 0) + 1)
        offset = self._positions.get(partition, 0)
        self._waits = True
        bytes_max = BYTES_MAX[self.entropy.below(len(BYTES_MAX))]
        message = requests.fetched_committed(partition, offset, bytes_max=bytes_max, wait_ms=WAIT_MS)

        def fetched(response: Any) -> None:
            self._waits = False
            self._next_ms = self.now_ms + self.entropy.below(PAUSE_MS_MAX)
            part = response.responses[0].partitions[0]
            if part.error_code:
                error = ErrorCode(part.error_code)
                if error is ErrorCode.OFFSET_OUT_OF_RANGE and self._is_behind_a_loss(partition):
                    self._positions[partition] = min(offset, partition.known_end)
                    return
                honest = error is ErrorCode.KAFKA_STORAGE_ERROR and self.excused
                require(honest, HONEST_ERRORS, f"{error.name} for a read of committed records in {partition}")
                return
            _, self._positions[partition] = committed_batches(self.context.histories, partition, part, offset)
            self._read += 1

        self.ask(ApiKey.FETCH, requests.FETCH, message, fetched)

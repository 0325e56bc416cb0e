"""Unique batches: each has its number in the key of its first record."""

from headrace.sim.checkers.history import NO_PRODUCER, NUMBER_BYTES, PartitionHistory, SendingProducer, SentBatch
from headrace.sim.checkers.transactions import TransactionHistory
from headrace.sim.clock import WALL_START_MS
from headrace.sim.context import RunContext
from headrace.wire.records.builder import NewRecord, build_batch

RECORDS_MAX = 4
SMALL_BYTES_MAX = 600
LARGE_BYTES_MAX = 40_000
HUGE_BYTES = 150_000
"""Larger than the node's shared receive arena."""
LARGE_ONE_IN = 40
HUGE_ONE_IN = 400
POOL_BYTES = 1 << 18


class BatchMaker:
    """Draws sizes and contents for one producer."""

    def __init__(self, context: RunContext, name: str) -> None:
        self._context = context
        self._entropy = context.world.entropy.branch(f"batches {name}")
        self._pool = self._entropy.random_bytes(POOL_BYTES)

    def make(
        self,
        partition: PartitionHistory,
        *,
        producer: SendingProducer = NO_PRODUCER,
        sequence: int = -1,
        transaction: TransactionHistory | None = None,
    ) -> SentBatch:
        sent = self._context.histories.sent
        number = len(sent)
        timestamp = WALL_START_MS + int(self._context.world.time.now_ms)
        records = [NewRecord(timestamp, number.to_bytes(NUMBER_BYTES, "big"), None)]
        values = (self._drawn_value() for _ in range(self._entropy.below(RECORDS_MAX)))
        records += [NewRecord(timestamp, None, value) for value in values]
        content = build_batch(
            records,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=transaction is not None,
        )
        batch = SentBatch(
            number,
            bytes(content),
            len(records),
            partition,
            timestamp=timestamp,
            producer=producer,
            sequence=sequence,
            transaction=transaction,
        )
        sent.append(batch)
        return batch

    def _drawn_value(self) -> bytes:
        if self._entropy.one_in(HUGE_ONE_IN):
            size = HUGE_BYTES
        elif self._entropy.one_in(LARGE_ONE_IN):
            size = self._entropy.below(LARGE_BYTES_MAX)
        else:
            size = self._entropy.below(SMALL_BYTES_MAX)
        begin = self._entropy.below(POOL_BYTES - size)
        return self._pool[begin : begin + size]

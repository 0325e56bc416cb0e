"""The final audit of a healed node: everything is read from the beginning and compared with the histories."""

from typing import Any

from headrace.model.errors import ErrorCode
from headrace.sim.checkers.history import NO_PRODUCER, PartitionHistory, SendingProducer, SentBatch
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.context import RunContext
from headrace.sim.node import HOST, PORT
from headrace.sim.workloads import requests
from headrace.sim.workloads.connection import KafkaConnection
from headrace.sim.workloads.consumers import TIME_IS_FOUND
from headrace.wire.apis import ApiKey

ANSWER_STEPS_MAX = 5_000
ATTEMPTS_MAX = 200
IN_SEQUENCE = "the batches of an idempotent producer are in the log without gap, double or reordering"
ALL_THERE = "acknowledged or shown records are readable"


class Auditor:
    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._connection = KafkaConnection(context.world, HOST, PORT)

    def check(self) -> None:
        for plan in self._context.plans:
            for partition in plan.targets:
                batches = self._read_all(partition)
                _check_entries(partition, batches)
                _check_sequences(partition, batches)
                self._check_times(partition, batches)
        self._connection.wire.close()

    def ask(self, api_key: ApiKey, version: int, request: object) -> Any:
        responses: list[Any] = []
        self._connection.send(api_key, version, request)

        def answered() -> bool:
            responses.extend(message for _, message in self._connection.poll())
            return bool(responses) or self._connection.is_closed()

        self._context.world.run_until(answered, ANSWER_STEPS_MAX)
        require(bool(responses), ALL_THERE, "the audit connection was closed")
        return responses[0]

    def _read_all(self, partition: PartitionHistory) -> list[SentBatch]:
        """Read everything by topic name, so that an old topic of that name would be noticed too."""
        found: list[SentBatch] = []
        offset = partition.start
        for _ in range(ATTEMPTS_MAX):
            wanted = requests.wanted_topic(partition.topic.name, [(partition.index, offset)])
            response = self.ask(ApiKey.FETCH, requests.FETCH_BY_NAME, requests.fetched([wanted], wait_ms=0))
            part = response.responses[0].partitions[0]
            if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and offset < part.log_start_offset:
                partition.starts_at(part.log_start_offset)
                offset = part.log_start_offset
                found.clear()
                continue
            if part.error_code:
                raise Violation(ALL_THERE, f"{ErrorCode(part.error_code).name} for offset {offset} of {partition}")
            if part.records:
                shown, offset = self._context.histories.show(
                    partition,
                    bytes(part.records),
                    offset=offset,
                    high_watermark=part.high_watermark,
                    sync_level=partition.topic.sync_level,
                )
                found += shown
            elif offset >= partition.known_end:
                return found
        raise Violation(ALL_THERE, f"{partition} is readable up to {offset}, but {partition.known_end} was promised")

    def _check_times(self, partition: PartitionHistory, batches: list[SentBatch]) -> None:
        """Check offsets by time. Nothing is written, so each lookup has one right result, unless retention removes
        records.
        """
        topic = partition.topic
        if topic.append_time or not topic.keeps_all or not batches or partition.markers:
            return
        wanted = sorted(batch.timestamp for batch in batches)[len(batches) // 2]
        expected = next(batch for batch in batches if batch.timestamp >= wanted)
        assert expected.offset is not None
        due = expected.offset
        request = requests.offset_at(partition.topic.name, partition.index, wanted)
        part = self.ask(ApiKey.LIST_OFFSETS, requests.LIST_OFFSETS, request).topics[0].partitions[0]
        right = part.error_code == ErrorCode.NONE and part.offset == due
        require(right, TIME_IS_FOUND, f"{partition}: time {wanted} is at {due}, but {part.offset} was returned")


def _check_entries(partition: PartitionHistory, batches: list[SentBatch]) -> None:
    found = {offset for batch in batches for offset in range(batch.offset or 0, (batch.offset or 0) + batch.count)}
    missing = [offset for offset in partition.entries if offset not in found and offset >= partition.start]
    require(
        not missing, ALL_THERE, f"{partition} lacks {len(missing)} offsets, the first is {min(missing, default=-1)}"
    )


def _check_sequences(partition: PartitionHistory, batches: list[SentBatch]) -> None:
    expected: dict[SendingProducer, int] = {}
    whole = partition.start == 0 and not partition.losses
    for batch in batches:
        if batch.producer == NO_PRODUCER:
            continue
        due = expected.get(batch.producer, 0 if whole else batch.sequence)
        if batch.sequence != due:
            raise Violation(IN_SEQUENCE, f"{batch} is at offset {batch.offset} where sequence {due} was expected")
        expected[batch.producer] = batch.sequence + batch.count

"""A whole node on virtual ports that compacts all the time, is killed and loses its power; and what stops a pass."""

import errno
from functools import partial
from typing import Any

import pytest

from headrace.log.checkpoints import decode_offsets
from headrace.model.ids import TopicPartition
from headrace.sim.node import VirtualNode
from headrace.sim.world import World
from headrace.wire.apis import ApiKey
from headrace.wire.messages import delete_topics, incremental_alter_configs, list_offsets, produce
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import HEADER
from headrace.wire.records.reader import batches, check_batch, records

from .virtual_client import PRODUCE_VERSION, VirtualClient

TOPIC = "table"
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "1000",
    "flush.messages": "1",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "200",
    "file.delete.delay.ms": "50",
}
KEYS = 6


class Table:
    """A compacted topic, everything that was written to it, and a client that writes and reads."""

    def __init__(self, seed: int, *, configs: dict[str, str] | None = None, backoff_ms: int = 100) -> None:
        self.world = World(seed)
        self.virtual = VirtualNode(self.world, {"log.cleaner.backoff.ms": str(backoff_ms)})
        self.virtual.boot()
        self.written: list[tuple[bytes, bytes | None]] = []
        self.connect()
        self.client.create_topic(TOPIC, {**CONFIGS, **(configs or {})})

    def connect(self) -> None:
        self.client = VirtualClient(self.world)

    @property
    def log(self):
        return self.virtual.running.broker.partitions.by_name[TOPIC.encode()].replicas[0].log

    @property
    def compactor(self):
        return self.virtual.running.compactor

    def write(self, key: bytes, value: bytes | None) -> bool:
        """Return whether the record was acknowledged; False if the node's end came before."""
        error = self.produce(TOPIC, key, value)
        if error is None:
            return False
        assert error == 0
        self.written.append((key, value))
        return True

    def produce(self, topic: str, key: bytes, value: bytes | None) -> int | None:
        """The error code of the answer; None if the node's end came before."""
        batch = build_batch([NewRecord(self.virtual.machine.clock.wall_ms(), key, value)])
        part = produce.ProduceRequestPartition(index=0, records=bytes(batch))
        data = produce.ProduceRequestTopic(name=topic, partition_data=(part,))
        request = produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(data,))
        self.client.send(ApiKey.PRODUCE, PRODUCE_VERSION, request)
        answers: list[object] = []

        def over() -> bool:
            answers.extend(self.client.poll())
            return bool(answers) or self.virtual.node is None

        self.world.run_until(over)
        return answers[0].responses[0].partition_responses[0].error_code if answers else None

    def write_many(self, count: int) -> None:
        for _ in range(count):
            number = len(self.written)
            self.write(b"key-%d" % (number % KEYS), b"value-%d" % number)

    def read(self) -> list[tuple[int, bytes | None, bytes | None]]:
        return self.read_from(0)

    def read_from(self, offset: int) -> list[tuple[int, bytes | None, bytes | None]]:
        found: list[tuple[int, bytes | None, bytes | None]] = []
        while True:
            answer = self.client.fetch(TOPIC, offset)
            assert answer.error_code == 0
            if not answer.records:
                assert offset >= answer.high_watermark
                return found
            for batch in batches(answer.records, allow_truncated_end=True):
                check_batch(batch)
                found += [(r.offset, r.key, r.value) for r in records(batch) if r.offset >= offset]
                fields = HEADER.unpack_from(batch)
                offset = max(offset, fields[0] + fields[6] + 1)

    def ask_for_a_pass(self, text: str = "now") -> None:
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=(
                incremental_alter_configs.IncrementalAlterConfigsRequestResource(
                    resource_type=2,
                    resource_name=TOPIC,
                    configs=(
                        incremental_alter_configs.IncrementalAlterConfigsRequestConfig(
                            name="headrace.compact.request", config_operation=0, value=text
                        ),
                    ),
                ),
            )
        )
        answer = self.client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert answer.responses[0].error_code == 0

    def delete(self) -> None:
        topics = (delete_topics.DeleteTopicsRequestTopic(name=TOPIC),)
        request = delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=1000)
        answer = self.client.ask(ApiKey.DELETE_TOPICS, 6, request)
        assert answer.responses[0].error_code == 0

    def await_passes(self, count: int) -> None:
        self.world.run_until(lambda: self.compactor.passes_ended >= count)

    def settle(self) -> None:
        """Until nothing is left to be compacted or written down."""
        passes = -1
        while passes != self.compactor.passes_ended:
            passes = self.compactor.passes_ended
            began_ms = self.world.time.now_ms
            self.world.run_until(partial(self._rests_after, began_ms + 400))

    def _rests_after(self, at_ms: float) -> bool:
        return self.world.time.now_ms > at_ms and not self.virtual.machine.spawner.in_flight()


@pytest.mark.parametrize("seed", range(4))
def test_what_was_acknowledged_survives_ends_in_the_middle_of_compaction(seed: int) -> None:
    table = Table(seed)
    compacted = 0
    for round_number in range(5):
        table.write_many(40)
        table.virtual.machine.cut_off_after(table.world.entropy.below(900), power=round_number % 2 == 0)
        while table.virtual.node is not None and table.virtual.machine.disk.on_operation is not None:
            compacted = max(compacted, table.compactor.passes_ended)
            number = len(table.written)
            if not table.write(b"key-%d" % (number % KEYS), b"value-%d" % number):
                break
        table.virtual.boot()
        table.connect()
        table.client.await_high_watermark(TOPIC, len(table.written))
        found = table.read()
        unacknowledged = table.log.end_offset - len(table.written)
        assert unacknowledged in (0, 1)
        known = dict(enumerate(table.written))
        for offset, key, value in found:
            assert known.get(offset, (key, value)) == (key, value)
        if unacknowledged:
            (last,) = [row for row in found if row[0] == len(table.written)]
            table.written.append((last[1], last[2]))
        assert {key: value for _, key, value in found} == dict(table.written)
    assert compacted > 0


def test_the_background_cleans_what_is_dirty_and_then_rests() -> None:
    table = Table(1)
    table.write_many(100)
    table.settle()
    active = table.log.active.base_offset
    keys = [key for offset, key, _ in table.read() if offset < active]
    assert len(keys) == len(set(keys)) == KEYS
    passes = table.compactor.passes_ended
    assert passes
    began_ms = table.world.time.now_ms
    table.world.run_until(lambda: table.world.time.now_ms > began_ms + 2000)
    assert table.compactor.passes_ended == passes
    disk = table.virtual.machine.disk
    checkpoint = disk.open("data/cleaner-offset-checkpoint")
    content = disk.read(checkpoint, 1000, 0)
    assert decode_offsets(content) == {TopicPartition(TOPIC, 0): active}
    assert f"{TOPIC} 0 {active}" in content.decode().split("\n")
    assert not [name for name in disk.list_directory(f"data/{TOPIC}-0") if name.endswith(".deleted")]


def test_a_pass_that_was_asked_for_takes_everything() -> None:
    table = Table(2, configs={"min.cleanable.dirty.ratio": "1"}, backoff_ms=600_000)
    table.write_many(50)
    table.ask_for_a_pass()
    table.await_passes(1)
    assert [offset for offset, _, _ in table.read()] == list(range(44, 50))
    assert table.log.end_offset == 50
    table.write(b"key-0", None)
    table.ask_for_a_pass("again")
    table.await_passes(2)
    assert table.read()[-1] == (50, b"key-0", None)
    table.ask_for_a_pass("again")  # the same value asks for nothing
    began_ms = table.world.time.now_ms
    table.world.run_until(lambda: table.world.time.now_ms > began_ms + 1000)
    assert table.compactor.passes_ended == 2
    table.ask_for_a_pass("at last")
    table.await_passes(3)
    assert b"key-0" not in [key for _, key, _ in table.read()]


def test_a_restart_does_not_repeat_what_was_asked_for() -> None:
    table = Table(3, backoff_ms=600_000)
    table.write_many(30)
    table.ask_for_a_pass()
    table.await_passes(1)
    table.virtual.stop()
    table.virtual.boot()
    table.connect()
    assert [offset for offset, _, _ in table.read()] == list(range(24, 30))
    began_ms = table.world.time.now_ms
    table.world.run_until(lambda: table.world.time.now_ms > began_ms + 500)
    assert table.compactor.passes_ended == 0


def test_a_deleted_topic_ends_its_pass() -> None:
    table = Table(4, backoff_ms=600_000)
    table.write_many(60)
    table.ask_for_a_pass()
    table.world.run_until(lambda: bool(table.compactor._passes))
    table.delete()
    table.world.run_until(lambda: not table.compactor._passes)
    table.world.run_until(lambda: not table.virtual.machine.spawner.in_flight())
    assert not table.virtual.machine.disk.exists(f"data/{TOPIC}-0")


def test_deletion_and_compaction_together() -> None:
    configs = {"cleanup.policy": "compact,delete", "retention.bytes": "300", "min.cleanable.dirty.ratio": "0.01"}
    table = Table(5, configs=configs)
    table.write_many(150)
    table.settle()
    table.virtual.running._housekeeping._check_all()
    table.settle()
    kept = dict(table.written[table.log.start_offset :])
    found = table.read_from(table.log.start_offset)
    assert {key: value for _, key, value in found} == kept
    assert table.log.start_offset > 0


def test_a_damaged_segment_is_left_alone_and_reported() -> None:
    table = Table(6, backoff_ms=600_000)
    table.write_many(40)
    disk = table.virtual.machine.disk
    file = disk.open(f"data/{TOPIC}-0/{0:020d}.log")
    disk.write_vector(file, [b"\xff"], 150)
    table.ask_for_a_pass()
    table.world.run_until(lambda: table.compactor.passes_failed > 0)
    assert len(table.compactor._health.uncleanable) == 1
    assert len(table.log.segments) > 3
    names = disk.list_directory(f"data/{TOPIC}-0")
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]


@pytest.mark.parametrize("operation", ["write_vector", "data_sync"])
def test_a_full_device_puts_a_pass_off(operation: str) -> None:
    table = Table(7, configs={"min.cleanable.dirty.ratio": "1"}, backoff_ms=600_000)
    table.write_many(40)
    table.virtual.machine.disk.faults.fail(operation, code=errno.ENOSPC, path_contains=".cleaned")
    table.ask_for_a_pass()
    table.world.run_until(lambda: table.compactor.passes_failed > 0)
    assert not table.compactor._health.uncleanable
    table.ask_for_a_pass("again")
    table.await_passes(1)
    assert len(table.read()) == KEYS


def test_offsets_by_time_while_segments_are_exchanged() -> None:
    """A search that was asked for before the exchange and runs after it finds the right record."""
    table = Table(8, backoff_ms=600_000)
    table.write_many(60)
    wall_ms = table.virtual.machine.clock.wall_ms()
    spawner = table.virtual.machine.spawner
    spawner.hold(name_contains="TimeSearch")
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1,
        topics=(
            list_offsets.ListOffsetsRequestTopic(
                name=TOPIC,
                partitions=(
                    list_offsets.ListOffsetsRequestPartition(
                        partition_index=0, current_leader_epoch=-1, timestamp=wall_ms - 60_000
                    ),
                ),
            ),
        ),
    )
    table.ask_for_a_pass()
    table.client.send(ApiKey.LIST_OFFSETS, 7, request)
    table.await_passes(1)
    spawner.release()
    answers: list[Any] = []

    def has_answer() -> bool:
        answers.extend(table.client.poll())
        return bool(answers)

    table.world.run_until(has_answer)
    found = answers[0].topics[0].partitions[0]
    assert found.error_code == 0
    assert found.offset == table.read()[0][0] == 54


def test_the_checkpoint_forgets_deleted_topics() -> None:
    table = Table(9)
    offsets = table.compactor._clean_offsets["data"]
    offsets[TopicPartition("gone", 3)] = 77
    table.write_many(60)
    table.settle()
    assert set(table.compactor._clean_offsets["data"]) == {TopicPartition(TOPIC, 0)}


def test_a_checkpoint_that_could_not_be_written_is_tried_again() -> None:
    table = Table(10)
    disk = table.virtual.machine.disk
    disk.faults.fail("data_sync", code=errno.ENOSPC, path_contains="cleaner-offset-checkpoint", times=2)
    table.write_many(60)
    table.settle()
    assert not disk.faults.is_planned
    checkpoint = disk.open("data/cleaner-offset-checkpoint")
    assert decode_offsets(disk.read(checkpoint, 1000, 0)) == {TopicPartition(TOPIC, 0): table.log.active.base_offset}


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC])
@pytest.mark.parametrize(("operation", "skip"), [("sync_directory", n) for n in range(6)] + [("rename", 0)])
def test_an_exchange_that_lacks_room_or_descriptors_is_finished_later(operation: str, skip: int, code: int) -> None:
    """Its helper may have renamed some of the files by then: the partition is read on meanwhile."""
    table = Table(11, configs={"min.cleanable.dirty.ratio": "1"}, backoff_ms=600_000)
    table.write_many(40)
    table.world.run_until(lambda: not table.virtual.machine.spawner.in_flight())
    spawner, faults = table.virtual.machine.spawner, table.virtual.machine.disk.faults
    spawner.hold(name_contains="swap_work")
    table.ask_for_a_pass()
    table.world.run_until(lambda: any("swap_work" in name for name in spawner.waiting_names()))
    faults.fail(operation, code=code, path_contains=f"data/{TOPIC}-0", skip=skip, times=3)
    spawner.release()
    table.world.run_until(lambda: bool(faults.raised))
    assert len(table.read()) > KEYS
    table.world.run_until(lambda: not table.compactor._passes)
    assert not table.log.failed
    faults.heal()
    table.ask_for_a_pass("again")  # the process that cleans may have met the same
    table.await_passes(1)
    table.world.run_until(lambda: table.produce(TOPIC, b"key-0", b"later") == 0)
    table.written.append((b"key-0", b"later"))
    assert dict(table.written) == {key: value for _, key, value in table.read()}
    table.virtual.stop()
    table.virtual.boot()
    table.connect()
    table.client.await_high_watermark(TOPIC, len(table.written))
    assert dict(table.written) == {key: value for _, key, value in table.read()}

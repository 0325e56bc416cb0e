"""Whole batches, taken together: how many at once, their records, and the report of damage among them."""

from collections.abc import Callable

import pytest

from headrace.client.core import consumer
from headrace.client.core.cluster import Cluster
from headrace.client.core.consumer import FEW_PARTITIONS_MAX, ConsumerCore, ConsumerSettings
from headrace.client.core.fetch_requests import FetchSettings
from headrace.client.core.partition_reader import open_batch
from headrace.client.errors import BadResponse
from headrace.client.record_batch import RecordBatch
from headrace.model.ids import TopicPartition
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import CRC_AT, CRC_COVERS_FROM, HEADER_SIZE, checksum

from .test_consumer_core import T0, World, batch, values


def test_batches_are_given_together_up_to_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one partition, until they have enough bytes; then it is the other's turn."""
    log = [batch(number, b"%d" % number) for number in range(5)]
    monkeypatch.setattr(consumer, "TURN_BYTES", 2 * len(log[0]))
    world = World(partitions=2)
    world.logs = {0: log, 1: log[:1]}
    for _ in range(4):
        world.step()
    taken = []
    while found := world.core.take_batches():
        whole = RecordBatch(found)
        assert (whole.offset, whole.next_offset, len(whole)) == (found[0].begin, found[-1].end, len(found))
        assert (
            whole.values() == values(whole.records()) == values(record for each in found for record in open_batch(each))
        )
        taken.append((whole.partition, whole.offset, whole.next_offset))
    assert [each for each in taken if each[0] == 0] == [(0, 0, 2), (0, 2, 4), (0, 4, 5)]
    assert (1, 0, 1) in taken[:2]
    assert world.core.position(T0) == 5


def test_damage_behind_whole_batches_is_reported_after_them() -> None:
    log = [batch(number, b"%d" % number) for number in range(3)]
    damaged = bytearray(log[2])
    damaged[-1] ^= 1
    world = World()
    world.logs[0] = [*log[:2], bytes(damaged)]
    for _ in range(4):
        world.step()
    assert [each.begin for each in world.core.take_batches()] == [0, 1]
    with pytest.raises(BadResponse, match="damaged at offset 2"):
        world.core.take_batches()
    assert world.core.position(T0) == 2


@pytest.mark.parametrize("read", [RecordBatch.records, RecordBatch.values, RecordBatch.keys, RecordBatch.to_arrow])
def test_what_was_produced_damaged_is_reported_by_its_offset(read: Callable[[RecordBatch], object]) -> None:
    """The checksum is right, and the records cannot be decompressed: the broker has stored them as they are."""
    log = [batch(number, b"%d" % number, compression=Compression.GZIP) for number in range(3)]
    damaged = bytearray(log[1])
    damaged[HEADER_SIZE:] = bytes(len(damaged) - HEADER_SIZE)
    damaged[CRC_AT:CRC_COVERS_FROM] = checksum(damaged).to_bytes(4)
    world = World()
    world.logs[0] = [log[0], bytes(damaged), log[2]]
    for _ in range(4):
        world.step()
    whole = RecordBatch(world.core.take_batches())
    assert (whole.offset, whole.next_offset) == (0, 3)
    with pytest.raises(BadResponse, match=r"t-0 is damaged at offset 1: .* up to offset 2$"):
        read(whole)


def test_more_is_fetched_at_once_of_few_partitions() -> None:
    for partitions, expected in ((FEW_PARTITIONS_MAX, 4_000), (FEW_PARTITIONS_MAX + 1, 1_000)):
        core = ConsumerCore(
            ConsumerSettings(fetches=FetchSettings(partition_bytes_max=1_000), few_partitions_bytes=4_000), Cluster()
        )
        core.assign(TopicPartition("t", number) for number in range(partitions))
        assert core._bytes_max() == expected

"""A data folder with every kind of file in it, what a reader must find there, and what damage does to it."""

from typing import Any

from headrace.broker.cluster import metadata_log
from headrace.log.errors import LogError
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.errors import ProtocolError
from headrace.wire.messages import delete_records
from headrace.wire.records.reader import batches, check_batch, records
from tests.disks.virtual_disks import DiskBroker

TOPICS = {"many": 2, "few": 1}
SETTINGS = {"log.flush.offset.checkpoint.interval.ms": "200"}
FETCHES_MAX = 500
REFUSALS = (LogError, metadata_log.MetadataDamaged)
"""Refusals of a start, with a message that says what to do."""


class Golden:
    """Files by path, and of every partition its records and the last batch of its producer."""

    def __init__(self, *, clean):
        broker = DiskBroker(settings=SETTINGS)
        client = broker.client()
        configs = {"segment.bytes": "3000", "index.interval.bytes": "200"}
        assert client.create_topic("many", partitions=2, configs=configs).error_code == 0
        assert client.create_topic("few").error_code == 0
        self.last_batches = {}
        for start in range(3):  # a leader epoch each
            client = broker.client()
            for number in range(12):
                for topic, partitions in TOPICS.items():
                    for partition in range(partitions):
                        self._produce(client, topic, partition, start * 12 + number)
            if start == 1:
                _delete_below(client, "many", 1, 7)
                for number in range(40):  # enough metadata for snapshots
                    assert client.alter_configs(2, "few", {"retention.ms": 700_000_000 + number}) == 0
            if start < 2:
                broker.restart()
        broker.pass_time(1_000)
        self.expected = {
            (topic, partition): _read(broker.client(), topic, partition)[0]
            for topic, partitions in TOPICS.items()
            for partition in range(partitions)
        }
        broker.stop() if clean else broker.machine.kill()
        self.files = dict(_files(broker.disk, "data"))

    def _produce(self, client, topic, partition, number):
        content = client.batch(
            b"%s %d %d " % (topic.encode(), partition, number) + bytes(150),
            producer_id=1000 + partition,
            producer_epoch=0,
            base_sequence=number,
        )
        assert client.produce_error(topic, partition, content) == 0
        self.last_batches[topic, partition] = content

    def boot(self, changes):
        """A broker on these files with some of them changed (None: gone)."""
        broker = DiskBroker(settings=SETTINGS, boot=False)
        for path, content in {**self.files, **changes}.items():
            if content is not None:
                broker.disk.make_directory(path.rpartition("/")[0])
                file = broker.disk.open(path, create=True)
                if content:
                    broker.disk.write_vector(file, [content], 0)
                broker.disk.data_sync(file)
                broker.disk.close(file)
        broker.boot()
        return broker


def _delete_below(client, topic, partition, offset):
    asked = delete_records.DeleteRecordsRequestPartition(partition_index=partition, offset=offset)
    request = delete_records.DeleteRecordsRequest(
        topics=(delete_records.DeleteRecordsRequestTopic(name=topic, partitions=(asked,)),), timeout_ms=30_000
    )
    assert client.ask(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0].error_code == 0


def _files(disk, folder):
    for name in disk.list_directory(folder):
        path = f"{folder}/{name}"
        if disk.is_directory(path):
            yield from _files(disk, path)
        elif name not in (".lock", ".headrace-reserve"):
            file = disk.open(path, writable=False)
            yield path, disk.read(file, disk.size(file), 0)
            disk.close(file)


def _read(client, topic, partition):
    """({offset: value}, what stopped the reader): as a client that checks checksums sees the partition."""
    found: dict[Any, Any] = {}
    offset = 0
    for _ in range(FETCHES_MAX):
        answer = client.fetch(topic, partition, offset)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and offset == 0 and answer.log_start_offset > 0:
            offset = answer.log_start_offset
            continue
        if answer.error_code:
            return found, ErrorCode(answer.error_code).name
        if not answer.records:
            return found, "" if offset >= answer.high_watermark else "nothing came"
        try:
            for batch in batches(answer.records, allow_truncated_end=True):
                check_batch(batch)
                for record in records(batch):
                    if record.offset >= offset:
                        found[record.offset] = bytes(record.value)
        except ProtocolError as error:
            return found, f"the client refuses: {error}"
        if not found or max(found) < offset:
            return found, "the same again"
        offset = max(found) + 1
    return found, "without end"


def outcome(golden, changes, *, may_cut=False):
    """Return what becomes of a damaged folder; AssertionError if damage passes for good."""
    try:
        broker = golden.boot(changes)
    except REFUSALS as refusal:
        if any(advice in str(refusal) for advice in ("restore", "choose another")):
            return "start refused"
        raise AssertionError("it does not say what to do") from refusal
    client = broker.client()
    seen = []
    for place, expected in golden.expected.items():
        found, stopped = _read(client, *place)
        wrong = {offset: value for offset, value in found.items() if expected.get(offset, value) != value}
        assert not wrong, f"{place} gives {wrong}"
        missing = [offset for offset in expected if offset not in found]
        if may_cut and not stopped:
            kept = [offset for offset in expected if offset in found]
            assert kept == list(expected)[: len(kept)], f"{place} has a hole: {missing}"
        else:
            assert stopped or not missing, f"{place} silently lost {missing}"
        if not stopped and not missing:
            log = broker.partition(*place).log
            assert client.produce_error(*place, golden.last_batches[place]) == 0
            assert log.end_offset == max(expected) + 1, f"{place} took a batch again that it has"
            assert client.produce_error(*place) == 0, "it goes on"
        seen.append("refused" if stopped else "cut" if missing else "whole")
    return " ".join(seen)

"""Helpers of the tests of disks: a virtual broker whose device can be filled, and producers that send again."""

from headrace.log import names
from headrace.model.errors import ErrorCode
from headrace.sim.disk import CAPACITY_BYTES
from tests.broker.virtual import VirtualBroker

SPARE_BYTES = 64 << 10


class DiskBroker(VirtualBroker):
    """A virtual broker on a device whose size the test sets."""

    def __init__(self, *, settings=None, **options):
        super().__init__(settings={"headrace.disk.free.min.bytes": str(1 << 20), **(settings or {})}, **options)

    @property
    def disk(self):
        return self.machine.disk

    @property
    def directories(self):
        return self.node.broker.partitions.directories

    def space(self, place=0):
        return self.directories[place].space

    def leave_free(self, free_bytes):
        """Someone else takes what else was free."""
        self.disk.capacity_bytes += free_bytes - self.disk.free_bytes("")

    def empty_out(self):
        self.disk.capacity_bytes = CAPACITY_BYTES

    def settle(self, *, full):
        self.run_until(lambda: self.space().full is full and not self.machine.spawner.waiting_names())

    def has_reserve(self, path="data"):
        return self.disk.exists(f"{path}/{names.RESERVE}")

    def events(self, text):
        return [line for line in self.log_lines if text in line]


class Sequenced:
    """An idempotent producer of one partition: one batch at a time, sent again until it is acknowledged."""

    def __init__(self, broker, topic, partition=0, *, producer_id=7):
        self._broker = broker
        self._topic, self._partition = topic, partition
        self._producer_id = producer_id
        self._client = broker.client()
        self.acked = []
        self.refused = 0

    def send(self, *, attempts=1):
        """Return whether the next value was acknowledged."""
        value = b"%d:%d" % (self._producer_id, len(self.acked))
        content = self._client.batch(
            value, producer_id=self._producer_id, producer_epoch=0, base_sequence=len(self.acked)
        )
        for _ in range(attempts):
            error = self._client.produce_error(self._topic, self._partition, content)
            if error == 0:
                self.acked.append(value)
                return True
            assert error == ErrorCode.KAFKA_STORAGE_ERROR
            self.refused += 1
            self._broker.steps(20)
        return False

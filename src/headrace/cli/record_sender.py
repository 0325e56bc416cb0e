"""RecordSender of the records of `headrace produce`, which counts acknowledged records."""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import cycle

from headrace.cli.console import say
from headrace.cli.failures import Failure
from headrace.cli.record_input import InputError, InputRecord
from headrace.client import Delivery, Producer
from headrace.client.errors import BrokerError, ClientError
from headrace.model.errors import ErrorCode
from headrace.operations.amounts import count_text
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.compression import Compression

UNCONFIRMED_MAX = 10_000
"""Deliveries of records or batches whose outcome has not been checked yet."""
DELIVERY_TIMEOUT_MS = 120_000
INTERRUPTED_FLUSH_MS = 5_000
"""Time that Ctrl-C waits for outstanding acknowledgements."""
VALUES_BYTES_MAX = 512 << 10
"""Bytes of values that are encoded as one batch; larger groups are sent record by record."""


class RecordSender:
    """Passes records to a producer and waits for acknowledgements, with a limit on those outstanding."""

    def __init__(self, producer: Producer, topic: str, *, at_once: bool) -> None:
        """With `at_once`, wait for each acknowledgement before reading the next record."""
        self.count = 0
        """Records passed to the producer."""
        self._producer = producer
        self._topic = topic
        self._at_once = at_once
        self._unconfirmed: deque[tuple[Delivery, int]] = deque()
        """Each delivery with its number of records."""

    def send(self, records: Iterable[InputRecord]) -> None:
        send, topic, note = self._producer.send, self._topic, self._unconfirmed.append
        unconfirmed_max = 1 if self._at_once else UNCONFIRMED_MAX
        for record in records:
            note((send(topic, *record), 1))
            self.count += 1
            if len(self._unconfirmed) >= unconfirmed_max:
                if self._at_once:
                    self._producer.flush()
                self._confirm(keep=unconfirmed_max // 2)

    def send_values(self, groups: Iterable[list[bytes]], partition: int | None, compression: Compression) -> None:
        """Send records that have only values, one batch per group, to one partition or round-robin to all."""
        turns: Iterator[int] | None = None
        for values in groups:
            if sum(map(len, values)) > VALUES_BYTES_MAX:
                self.send(InputRecord(value, partition=partition) for value in values)
                continue
            if turns is None:
                turns = cycle(
                    [partition] if partition is not None else range(self._producer.partition_count(self._topic))
                )
            builder = BatchBuilder()
            builder.append_values(time.time_ns() // 1_000_000, values)
            batch = builder.build(compression=compression)
            self._unconfirmed.append((self._producer.send_batch(self._topic, next(turns), batch), len(values)))
            self.count += len(values)
            if len(self._unconfirmed) >= UNCONFIRMED_MAX:
                self._confirm(keep=UNCONFIRMED_MAX // 2)

    def finish(self) -> None:
        """Wait until everything is acknowledged; raise the error of a refused record."""
        self._producer.flush()
        self._confirm()

    @contextmanager
    def explaining_failures(self) -> Iterator[None]:
        """Report how many records were sent before invalid input or Ctrl-C ended the command."""
        try:
            yield
        except InputError as wrong:
            self._confirm()
            raise Failure(f"{wrong} ({count_text(self.count, 'record')} before it were sent)") from None
        except KeyboardInterrupt:
            self._say_how_many()
            raise

    def _say_how_many(self) -> None:
        try:
            self._producer.flush(timeout_ms=INTERRUPTED_FLUSH_MS)
            self._confirm()
        except (ClientError, Failure):
            waiting = sum(count for _, count in self._unconfirmed)
            say(f"interrupted: at least {count_text(self.count - waiting, 'record')} of {self.count} were sent")
        else:
            say(f"interrupted: sent {count_text(self.count, 'record')}")

    def _confirm(self, *, keep: int = 0) -> None:
        """Wait for the oldest deliveries until `keep` are left."""
        try:
            while len(self._unconfirmed) > keep:
                self._unconfirmed[0][0].result(timeout_ms=DELIVERY_TIMEOUT_MS)
                self._unconfirmed.popleft()
        except BrokerError as refused:
            if refused.code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                raise Failure(f"{refused} (it is internal: only the broker writes to it)") from None
            raise

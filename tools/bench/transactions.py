"""Transaction load: producers that repeatedly write one batch and commit, with requests encoded in advance.

A transaction consists of two requests, as with transaction.version 2: a Produce, which adds the partition, and an
EndTxn, whose response has the next producer epoch. One loop drives all producers.
"""

import os
import selectors
import socket
import time
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from headrace.bench.brokers import MeasuredBroker
from headrace.bench.errors import RunRejected
from headrace.bench.figures import Round
from headrace.bench.histograms import histogram_of, percentile_us
from headrace.bench.links import ANSWER_SECONDS_MAX, CLIENT_ID, BenchConnection, host_and_port
from headrace.bench.topics import LOOK_AGAIN_SECONDS, create_topics, end_offsets
from headrace.model.errors import ErrorCode, error_name
from headrace.wire.apis import ApiKey
from headrace.wire.frames import SIZE_BYTES, request_frame
from headrace.wire.messages import end_txn, fetch, find_coordinator, init_producer_id, produce
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.header import BASE_OFFSET, CRC_AT, LAST_OFFSET_DELTA, RECORD_COUNT, checksum
from headrace.wire.records.reader import batches, check_batch, is_control

PRODUCE_VERSION = 12
END_VERSION = 5
INIT_VERSION = 5
FIND_VERSION = 4
FETCH_VERSION = 12
TRANSACTION_KEY = 1
READ_COMMITTED = 1
TIMEOUT_MS = 60_000
ACKS_ALL = -1
RETRY_SECONDS = 0.002
"""Delay before a retry while the previous transaction is still being completed."""

SETTLE_SECONDS_MAX = 30
"""Time limit for the last markers to be written."""

RECEIVE_BYTES = 64 << 10
FETCH_BYTES = 4 << 20
_PRODUCER_AT = 43
"""Producer id, producer epoch and base sequence in a batch."""

_PRODUCER = Struct(">qh")
_CRC = Struct(">I")
_ERROR = Struct(">h")
_HEAD_BYTES = SIZE_BYTES + 4 + 1
"""Size, correlation id and no tags."""

_ENDED = Struct(">ihqh")
"""Throttle time, error, producer id and epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLoad:
    producers: int = 8
    partitions: int = 4
    records: int = 10
    record_bytes: int = 100
    seconds: float = 3.0

    @property
    def name(self) -> str:
        return f"transactions, {self.producers} producers, {self.records} records each"


class TransactionReport(NamedTuple):
    transactions: int
    seconds: float
    times_seconds: list[float]
    retries: int
    client_cpu_seconds: float


class TransactionRounds:
    """Rounds of one load on one broker, each on a new topic with new transactional ids."""

    def __init__(self, broker: MeasuredBroker, load: TransactionLoad, *, topic: str) -> None:
        self._broker = broker
        self._load = load
        self._topic = topic
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        topic, load, address = f"{self._topic}-{self._round}", self._load, self._broker.address
        create_topics(address, [topic], partitions=load.partitions)
        producers = [_Producer(address, topic, number, load) for number in range(load.producers)]
        try:
            before = self._broker.cpu_seconds()
            report = _run(producers, load.seconds)
            after = self._broker.cpu_seconds()
        finally:
            for producer in producers:
                producer.close()
        _check_arrival(address, topic, load, report)
        histogram = histogram_of(report.times_seconds)
        figures = {
            "transactions_per_second": report.transactions / report.seconds,
            "p50_us": percentile_us(histogram, 0.5),
            "p99_us": percentile_us(histogram, 0.99),
            "client_cpu_us_per_request": report.client_cpu_seconds / report.transactions * 1e6,
            "retries_per_transaction": report.retries / report.transactions,
        }
        if before is not None and after is not None:
            figures["cpu_us_per_transaction"] = (after - before) / report.transactions * 1e6
        return figures


class _Producer:
    """A producer with one connection, one transactional id and one request in flight."""

    def __init__(self, address: str, topic: str, number: int, load: TransactionLoad) -> None:
        self._id = f"{topic}-{number}"
        with BenchConnection(address) as link:
            producer_id, epoch = _initialized(link, self._id)
        batch = _batch(load)
        self._writing = bytearray(_produce_frame(topic, number % load.partitions, self._id, batch))
        self._batch_at, self._batch_bytes = self._writing.index(batch), len(batch)
        self._ending = bytearray(_end_frame(self._id))
        self._ending_at = self._ending.index(self._id.encode()) + len(self._id)
        self._error_at = _HEAD_BYTES + 1 + 1 + len(topic) + 1 + 4  # one topic, its name, one partition, its number
        self._received = bytearray()
        self._is_writing = False
        self._began = 0.0
        self.times_seconds: list[float] = []
        self.retries = 0
        self.resume_at = 0.0
        """Time of the next write; 0 while a response is pending."""
        self._identify(producer_id, epoch)
        self.socket = socket.create_connection(host_and_port(address), ANSWER_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _identify(self, producer_id: int, epoch: int) -> None:
        _PRODUCER.pack_into(self._ending, self._ending_at, producer_id, epoch)
        at = self._batch_at
        _PRODUCER.pack_into(self._writing, at + _PRODUCER_AT, producer_id, epoch)
        _CRC.pack_into(self._writing, at + CRC_AT, checksum(memoryview(self._writing)[at : at + self._batch_bytes]))

    def begin(self) -> None:
        self._began = time.monotonic()
        self.write()

    def write(self) -> None:
        self.resume_at = 0.0
        self._is_writing = True
        self.socket.sendall(self._writing)

    def receive(self) -> bool:
        """Process a response and continue; return True if a transaction has ended."""
        received = self._received
        received += self.socket.recv(RECEIVE_BYTES)
        if not received:
            raise RunRejected("the broker closed a connection")
        if len(received) < SIZE_BYTES or len(received) < SIZE_BYTES + int.from_bytes(received[:SIZE_BYTES], "big"):
            return False
        answer, self._received = received, bytearray()
        if self._is_writing:
            self._written(_ERROR.unpack_from(answer, self._error_at)[0])
            return False
        _, error, producer_id, epoch = _ENDED.unpack_from(answer, _HEAD_BYTES)
        if error:
            raise RunRejected(f"a transaction was not committed: {error_name(error)}")
        self.times_seconds.append(time.monotonic() - self._began)
        self._identify(producer_id, epoch)
        return True

    def _written(self, error: int) -> None:
        if error == ErrorCode.CONCURRENT_TRANSACTIONS:
            self.retries += 1
            self.resume_at = time.monotonic() + RETRY_SECONDS
        elif error:
            raise RunRejected(f"a batch was not written: {error_name(error)}")
        else:
            self._is_writing = False
            self.socket.sendall(self._ending)

    def close(self) -> None:
        self.socket.close()


def _run(producers: list[_Producer], seconds: float) -> TransactionReport:
    """Run until the time is over; then complete all open transactions."""
    cpu_began, began = time.process_time(), time.monotonic()
    with selectors.DefaultSelector() as selector:
        for producer in producers:
            selector.register(producer.socket, selectors.EVENT_READ, producer)
            producer.begin()
        running = len(producers)
        answered = began
        while running:
            now = time.monotonic()
            for key, _ in selector.select(RETRY_SECONDS):
                answered = now
                if key.data.receive():
                    if now - began < seconds:
                        key.data.begin()
                    else:
                        running -= 1
            for producer in producers:
                if producer.resume_at and producer.resume_at <= now:
                    producer.write()
            if now - answered > ANSWER_SECONDS_MAX:
                raise RunRejected(f"no response within {ANSWER_SECONDS_MAX} s")
    times = [each for producer in producers for each in producer.times_seconds]
    retries = sum(producer.retries for producer in producers)
    return TransactionReport(len(times), time.monotonic() - began, times, retries, time.process_time() - cpu_began)


def _initialized(link: BenchConnection, transactional_id: str) -> tuple[int, int]:
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    find = find_coordinator.FindCoordinatorRequest(key_type=TRANSACTION_KEY, coordinator_keys=(transactional_id,))
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS
    )
    while True:
        link.call(find_coordinator, find, FIND_VERSION)  # creates the topic
        answer = link.call(init_producer_id, request, INIT_VERSION)
        if not answer.error_code:
            return answer.producer_id, answer.producer_epoch
        if time.monotonic() > deadline:
            raise RunRejected(f"no transactional producer: {error_name(answer.error_code)}")
        time.sleep(LOOK_AGAIN_SECONDS)


def _batch(load: TransactionLoad) -> bytes:
    builder, value, now_ms = BatchBuilder(), os.urandom(load.record_bytes), int(time.time() * 1000)
    for _ in range(load.records):
        builder.append(now_ms, None, value)
    return bytes(builder.build(producer_id=0, producer_epoch=0, base_sequence=0, transactional=True))


def _produce_frame(topic: str, partition: int, transactional_id: str, batch: bytes) -> bytes:
    part = produce.ProduceRequestPartition(index=partition, records=batch)
    request = produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=ACKS_ALL,
        timeout_ms=TIMEOUT_MS,
        topic_data=(produce.ProduceRequestTopic(name=topic, partition_data=(part,)),),
    )
    body = produce.encode_request(request, PRODUCE_VERSION)
    return request_frame(ApiKey.PRODUCE, PRODUCE_VERSION, 0, CLIENT_ID, body)


def _end_frame(transactional_id: str) -> bytes:
    request = end_txn.EndTxnRequest(transactional_id=transactional_id, committed=True)
    return request_frame(ApiKey.END_TXN, END_VERSION, 0, CLIENT_ID, end_txn.encode_request(request, END_VERSION))


def _check_arrival(address: str, topic: str, load: TransactionLoad, report: TransactionReport) -> None:
    """Check that partitions end after their records and markers, and that each committed record is read once."""
    if not report.transactions:
        raise RunRejected("no transaction was committed")
    wanted = report.transactions * (load.records + 1)
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while sum(ends := end_offsets(address, topic, partitions=load.partitions)) < wanted:
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_AGAIN_SECONDS)
    if sum(ends) != wanted:
        raise RunRejected(f"records and markers of all transactions are {wanted}, the partitions hold {sum(ends)}")
    with BenchConnection(address) as link:
        read = sum(_committed_records(link, topic, partition, end) for partition, end in enumerate(ends))
    if read != report.transactions * load.records:
        raise RunRejected(f"{report.transactions * load.records} records were committed, {read} can be read")


def _committed_records(link: BenchConnection, topic: str, partition: int, end_offset: int) -> int:
    offset = records = 0
    while offset < end_offset:
        wanted = fetch.FetchRequestPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        request = fetch.FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=READ_COMMITTED,
            topics=(fetch.FetchRequestTopic(topic=topic, partitions=(wanted,)),),
        )
        answer = link.call(fetch, request, FETCH_VERSION).responses[0].partitions[0]
        found = list(batches(answer.records or b""))
        if answer.error_code or not found:
            raise RunRejected(f"committed records end at offset {offset} of {end_offset}")
        for batch in found:
            fields = check_batch(batch)
            offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
            records += 0 if is_control(batch) else fields[RECORD_COUNT]
    return records

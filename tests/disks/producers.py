"""Idempotent producers on plain sockets that send again what was not acknowledged, and the ledger of what was."""

import random
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from struct import Struct
from typing import Any

from headrace.model.errors import ErrorCode
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages import create_topics, delete_records, delete_topics, fetch, init_producer_id, produce
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.reader import batches, check_batch, records

IN_FLIGHT_MAX = 5
RECORDS_PER_BATCH_MAX = 4
VALUE_BYTES_MAX = 600
RETRY_S = 0.02
ANSWER_S_MAX = 20.0
FETCH_BYTES = 4 << 20
READS_MAX = 50
SIZE = Struct(">i")


class Connection:
    """One request after another, or several in flight."""

    def __init__(self, address, timeout_s=ANSWER_S_MAX):
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._asked: deque[Any] = deque()
        self._next = 0

    def send(self, api_key, version, message):
        self._next += 1
        body = codec(api_key).encode_request(message, version)
        self._socket.sendall(frames.request_frame(api_key, version, self._next, "disks", body))
        self._asked.append((self._next, api_key, version))

    def receive(self):
        """The answer to the oldest request that has none; ConnectionError when the broker is gone."""
        while True:
            if len(self._received) >= SIZE.size:
                end = SIZE.size + SIZE.unpack_from(self._received)[0]
                if len(self._received) >= end:
                    break
            more = self._socket.recv(1 << 20)
            if not more:
                raise ConnectionError("closed by the broker")
            self._received += more
        frame = bytes(self._received[SIZE.size : end])
        del self._received[:end]
        asked, api_key, version = self._asked.popleft()
        answered, position = frames.read_response_header(frame, 0, len(frame), api_key=api_key, api_version=version)
        assert answered == asked, "answers come in the order of the requests"
        return codec(api_key).decode_response(frame, position, len(frame), version)

    def call(self, api_key, version, message):
        self.send(api_key, version, message)
        return self.receive()

    def close(self):
        self._socket.close()

    @staticmethod
    def send_quietly(call):
        """Call though the broker may end over it."""
        with suppress(OSError):
            call()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class StartMoved(Exception):
    """Records were deleted while they were read."""


class Ledger:
    """Every acknowledged record by its place, shared by all producers."""

    def __init__(self):
        self.acked = {}
        self.lock = threading.Lock()

    def note(self, topic, partition, base_offset, values):
        with self.lock:
            places = self.acked.setdefault((topic, partition), {})
            for offset, value in enumerate(values, base_offset):
                known = places.setdefault(offset, value)
                assert known == value, f"{topic}-{partition} gave offset {offset} to {known[:30]} and to {value[:30]}"

    def __len__(self):
        with self.lock:
            return sum(len(places) for places in self.acked.values())


class Producer(threading.Thread):
    """Sends to partitions in turn until it is stopped; whatever goes wrong, it sends again in the same order."""

    def __init__(self, address, ledger, name, targets, *, pace_s=0.0):
        super().__init__(daemon=True)
        self._address = address
        self._ledger = ledger
        self._name = name.encode()
        self._targets = targets
        self._pace_s = pace_s
        self._source = random.Random(name)
        self._producer_id = None
        self._sequences = dict.fromkeys(targets, 0)
        self._count = 0
        self._unacked: deque[Any] = deque()
        self._stopping = threading.Event()
        self._abandoned = False
        self.refused = 0
        self.failure = None

    def stop(self, timeout_s):
        """Everything sent is acknowledged when this returns."""
        self._stopping.set()
        self.join(timeout_s)
        still_there = self.is_alive()
        self._abandoned = True
        assert self.failure is None, self.failure
        assert not still_there, f"{len(self._unacked)} batches of {self._name} have no answer"

    def run(self):
        while not self._abandoned and not (self._stopping.is_set() and not self._unacked):
            try:
                with Connection(self._address) as connection:
                    self._produce(connection)
            except (OSError, ConnectionError):
                time.sleep(RETRY_S)
            except BaseException as error:  # the test must hear of it
                self.failure = error
                return

    def _produce(self, connection):
        if self._producer_id is None:
            request = init_producer_id.InitProducerIdRequest(transactional_id=None)
            answer = connection.call(ApiKey.INIT_PRODUCER_ID, 4, request)
            if answer.error_code:
                raise ConnectionError("no producer id yet")
            self._producer_id = answer.producer_id
        in_flight = deque(self._unacked)
        for batch in in_flight:
            self._send(connection, batch)
        while not self._abandoned:
            some_refused = len(in_flight) < len(self._unacked)
            while len(in_flight) < IN_FLIGHT_MAX and not some_refused and not self._stopping.is_set():
                in_flight.append(self._new_batch())
                self._unacked.append(in_flight[-1])
                self._send(connection, in_flight[-1])
            if not in_flight:
                if not self._unacked:
                    return
                time.sleep(RETRY_S)
                in_flight = deque(self._unacked)
                for batch in in_flight:
                    self._send(connection, batch)
            self._answered(in_flight.popleft(), connection.receive().responses[0].partition_responses[0])

    def _answered(self, batch, answer):
        if answer.error_code:
            self.refused += 1  # it stays among the unacknowledged, and is sent again with them
            return
        self._unacked.remove(batch)
        topic, partition, values, _, _ = batch
        self._ledger.note(topic, partition, answer.base_offset, values)
        if self._pace_s:
            time.sleep(self._pace_s)

    def _new_batch(self):
        topic, partition = self._targets[self._count % len(self._targets)]
        values = []
        for _ in range(self._source.randrange(1, RECORDS_PER_BATCH_MAX + 1)):
            values.append(b"%s:%d:" % (self._name, self._count) + bytes(self._source.randrange(VALUE_BYTES_MAX)))
            self._count += 1
        sequence = self._sequences[topic, partition]
        self._sequences[topic, partition] += len(values)
        return topic, partition, values, sequence, int(time.time() * 1000)

    def _send(self, connection, batch):
        topic, partition, values, sequence, timestamp = batch
        content = build_batch(
            [NewRecord(timestamp, None, value) for value in values],
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        part = produce.ProduceRequestPartition(index=partition, records=bytes(content))
        topic_data = (produce.ProduceRequestTopic(name=topic, partition_data=(part,)),)
        connection.send(ApiKey.PRODUCE, 9, produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topic_data))


# Administration and reading


def create_topic(connection, name, partitions=1, **configs):
    topic = create_topics.CreateTopicsRequestTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=tuple(
            create_topics.CreateTopicsRequestConfig(name=key.replace("_", "."), value=str(value))
            for key, value in configs.items()
        ),
    )
    request = create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=30_000)
    return connection.call(ApiKey.CREATE_TOPICS, 7, request).topics[0].error_code


def produce_once(connection, topic, partition, value):
    """The error code of one record with acks=all."""
    batch = bytes(build_batch([NewRecord(int(time.time() * 1000), None, value)]))
    data = produce.ProduceRequestPartition(index=partition, records=batch)
    topics = (produce.ProduceRequestTopic(name=topic, partition_data=(data,)),)
    connection.send(ApiKey.PRODUCE, 9, produce.ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=topics))
    return connection.receive().responses[0].partition_responses[0].error_code


def delete_topic(connection, name):
    topic = delete_topics.DeleteTopicsRequestTopic(name=name)
    request = delete_topics.DeleteTopicsRequest(topics=(topic,), timeout_ms=30_000)
    return connection.call(ApiKey.DELETE_TOPICS, 6, request).responses[0].error_code


def delete_below(connection, topic, partition, offset):
    asked = delete_records.DeleteRecordsRequestPartition(partition_index=partition, offset=offset)
    request = delete_records.DeleteRecordsRequest(
        topics=(delete_records.DeleteRecordsRequestTopic(name=topic, partitions=(asked,)),), timeout_ms=30_000
    )
    return connection.call(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0].error_code


def fetch_once(connection, topic, partition, offset):
    part = fetch.FetchRequestPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    request = fetch.FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        topics=(fetch.FetchRequestTopic(topic=topic, partitions=(part,)),),
    )
    return connection.call(ApiKey.FETCH, 12, request).responses[0].partitions[0]


def read_from(connection, topic, partition, offset):
    """(offset, value) of every record from there to the high watermark; batches are whole and their checksums right."""
    found: list[Any] = []
    while True:
        answer = fetch_once(connection, topic, partition, offset)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and offset < answer.log_start_offset:
            raise StartMoved
        assert answer.error_code == 0, f"{topic}-{partition} at offset {offset}: error {answer.error_code}"
        if not answer.records:
            assert offset >= answer.high_watermark, "nothing came though the high watermark is above"
            return found
        for batch in batches(answer.records, allow_truncated_end=True):
            check_batch(batch)
            found += [(record.offset, bytes(record.value)) for record in records(batch) if record.offset >= offset]
        offset = found[-1][0] + 1


class Checker:
    """Reads on from where it read before: no gap, nothing twice, everything acknowledged in its place."""

    def __init__(self, ledger):
        self._ledger = ledger
        self._ends = {}
        self._seen = {}
        self.read = 0

    def check(self, connection, topic, partition):
        place = (topic, partition)
        with self._ledger.lock:
            acked = dict(self._ledger.acked.get(place, {}))
        begin, found = self._read_on(connection, topic, partition, max(acked, default=-1))
        assert [offset for offset, _ in found] == list(range(begin, begin + len(found))), f"{topic} has a gap"
        seen = self._seen.setdefault(place, {})
        for offset, value in found:
            earlier = seen.setdefault(bytes(value).rstrip(b"\0"), offset)
            assert earlier == offset, f"{topic}-{partition} holds {value[:30]} at {earlier} and at {offset}"
        by_offset = dict(found)
        lost = [offset for offset, value in acked.items() if offset >= begin and by_offset.get(offset) != value]
        assert not lost, (
            f"{topic}-{partition} lost {len(lost)} of {len(acked)} acknowledged, from offset {min(lost)} on"
        )
        self._ends[place] = begin + len(found)
        self.read += len(found)

    def _read_on(self, connection, topic, partition, last_acked):
        """Where it began, and what it read; again if retention was faster."""
        for _ in range(READS_MAX):
            start = self._visible(connection, topic, partition, last_acked)
            begin = max(self._ends.get((topic, partition), 0), start)
            with suppress(StartMoved):
                return begin, read_from(connection, topic, partition, begin)
        raise AssertionError(f"the start of {topic}-{partition} does not stand still")

    def check_whole(self, connection, topic, partition):
        """From the log's start, whatever was read before."""
        self._ends.pop((topic, partition), None)
        self.check(connection, topic, partition)

    def _visible(self, connection, topic, partition, last_offset):
        """Wait until that offset can be read: a high watermark rises when what was recovered is synced. The start."""
        deadline = time.monotonic() + ANSWER_S_MAX
        while True:
            answer = fetch_once(connection, topic, partition, 1 << 62)
            if answer.high_watermark > last_offset:
                return answer.log_start_offset
            assert time.monotonic() < deadline, (
                f"{topic}-{partition} has its high watermark at {answer.high_watermark}, {last_offset} was acknowledged"
            )
            time.sleep(RETRY_S)

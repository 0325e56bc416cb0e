"""The replay client in Python, for machines without a compiler: like replay.c, at many times the cost.

`python -m headrace.bench.replay_process exchange|fetch|roundtrip name=value ...`; replay.c describes them.
"""

import json
import os
import select
import socket
import sys
import time
from collections import Counter, deque
from resource import RUSAGE_SELF, getrusage
from struct import Struct

from headrace.bench.histograms import bucket_of
from headrace.wire.errors import ProtocolError
from headrace.wire.messages import fetch as fetch_codec
from headrace.wire.records.header import (
    BASE_OFFSET,
    CRC,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LENGTH,
    LOG_OVERHEAD,
    RECORD_COUNT,
    checksum,
)

RECEIVE_BYTES = 256 << 10
WAIT_SECONDS = 0.02
DRAIN_SECONDS_MAX = 30
FETCH_VERSION = 12
SEQUENCE_MASK = 0x7FFFFFFF

OUT_OF_ORDER, UNREADABLE, UNCLEAN_END, GAP, NOT_REACHED = -2, -3, -4, -5, -6
CORRUPT_MESSAGE = 2

_CORRELATION_AT, _SEQUENCE_AT, _RESPONSE_BODY_AT = 8, 53, 9
_INT16, _INT32, _UINT32, _INT64 = Struct(">h"), Struct(">i"), Struct(">I"), Struct(">q")


class Arguments:
    def __init__(self, words: list[str]) -> None:
        self._texts = dict(word.split("=", 1) for word in words)

    def number(self, name: str, otherwise: int = 0) -> int:
        return int(self._texts.get(name, otherwise))

    def text(self, name: str) -> str:
        return self._texts[name]

    def seconds(self) -> float:
        return float(self._texts["seconds"])

    def connect(self) -> socket.socket:
        peer = socket.create_connection((self._texts["address"], self.number("port")))
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return peer

    def frames(self, size: int, count: int) -> list[bytearray]:
        with open(self._texts["file"], "rb") as file:
            file.seek(size * self.number("first"))
            return [bytearray(file.read(size)) for _ in range(count)]


class Result:
    def __init__(self) -> None:
        self.requests = self.errors = self.first_error = self.bytes = self.records = 0
        self.histogram: Counter[int] = Counter()
        self.began = time.monotonic()

    def note_error(self, code: int) -> None:
        self.first_error = self.first_error if self.errors else code
        self.errors += 1

    def note_latency(self, began_ns: int) -> None:
        self.histogram[bucket_of(time.monotonic_ns() - began_ns)] += 1

    def print(self) -> None:
        used = getrusage(RUSAGE_SELF)
        counts = {name: getattr(self, name) for name in ("requests", "errors", "first_error", "bytes", "records")}
        times = {"seconds": time.monotonic() - self.began, "client_cpu_seconds": used.ru_utime + used.ru_stime}
        print(json.dumps({**counts, **times, "histogram": self.histogram}))


class Exchange:
    """A connection of an exchange."""

    def __init__(self, arguments: Arguments, frame: bytearray, result: Result, offset_ns: int) -> None:
        self.socket = arguments.connect()
        self.socket.setblocking(False)
        self.outstanding: deque[int] = deque()
        self.begun = 0
        self._result = result
        self._frame = memoryview(frame)
        self._sent = 0
        self._answered = 0
        self._received = bytearray()
        self._depth = arguments.number("depth", 1)
        self._records = arguments.number("records", 1)
        self._batch_at = arguments.number("batch_at")
        self._batch_end = self._batch_at + arguments.number("batch_bytes")
        self._error_at = arguments.number("error_at")
        self._answers = arguments.number("answers", 1)
        self._interval_ns = arguments.number("interval_us") * 1000
        self._due_ns = offset_ns

    def begin_pacing(self, began_ns: int) -> None:
        self._due_ns += began_ns

    @property
    def is_idle(self) -> bool:
        return not self._sent and not self.outstanding

    def send_more(self, *, may_begin: bool) -> None:
        while self._sent or (may_begin and self._begin()):
            try:
                self._sent += self.socket.send(self._frame[self._sent :])
            except BlockingIOError:
                return
            if self._sent == len(self._frame):
                self._sent = 0

    def _begin(self) -> bool:
        now = time.monotonic_ns()
        if len(self.outstanding) >= self._depth or now < self._due_ns:
            return False
        self._renew_frame()
        self.begun += 1
        if self._answers:
            self.outstanding.append(self._due_ns if self._interval_ns else now)
        self._due_ns += self._interval_ns
        return True

    def _renew_frame(self) -> None:
        frame = self._frame
        _UINT32.pack_into(frame, _CORRELATION_AT, self.begun)
        if self._batch_at:
            batch = frame[self._batch_at : self._batch_end]
            _INT32.pack_into(batch, _SEQUENCE_AT, self.begun * self._records & SEQUENCE_MASK)
            _UINT32.pack_into(batch, CRC_AT, checksum(batch))

    def receive(self) -> None:
        try:
            part = self.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        if not part:
            sys.exit("replay: the broker closed a connection")
        self._received += part
        at = 0
        while len(self._received) - at >= 4:
            end = at + 4 + int(_UINT32.unpack_from(self._received, at)[0])
            if end > len(self._received):
                break
            self._take_answer(at, end)
            at = end
        del self._received[:at]

    def await_answers(self) -> None:
        """Receive exactly this many bytes from a blocking socket."""
        while self.outstanding:
            self.receive()

    def _take_answer(self, at: int, end: int) -> None:
        result = self._result
        result.note_latency(self.outstanding.popleft())
        if _UINT32.unpack_from(self._received, at + 4)[0] != self._answered:
            result.note_error(OUT_OF_ORDER)
        if self._error_at:
            error_at = at + self._error_at
            error = int(_INT16.unpack_from(self._received, error_at)[0]) if error_at + 2 <= end else UNREADABLE
            if error:
                result.note_error(error)
        self._answered += 1
        result.requests += 1
        result.bytes += end - at


def exchange(arguments: Arguments) -> Result:
    connections = arguments.number("connections", 1)
    interval_ns = arguments.number("interval_us") * 1000
    requests_max = arguments.number("requests") or sys.maxsize
    frames = arguments.frames(arguments.number("frame_bytes"), connections)
    result = Result()
    all_ = [Exchange(arguments, f, result, interval_ns * i // connections) for i, f in enumerate(frames)]
    by_descriptor = {one.socket.fileno(): one for one in all_}
    poller = select.epoll()
    for descriptor in by_descriptor:
        poller.register(descriptor, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    result.began = time.monotonic()
    end = result.began + arguments.seconds()
    for one in all_:
        one.begin_pacing(time.monotonic_ns())
    while True:
        events = poller.poll(min(WAIT_SECONDS, interval_ns / connections / 1e9) if interval_ns else WAIT_SECONDS)
        for descriptor, event in events:
            if event & ~select.EPOLLOUT:
                by_descriptor[descriptor].receive()
        for one in all_ if interval_ns else [by_descriptor[descriptor] for descriptor, _ in events]:
            # At least once, so that a short round on a stalled machine has a figure too.
            in_time = time.monotonic() < end or not one.begun
            one.send_more(may_begin=in_time and sum(c.begun for c in all_) < requests_max)
        over = time.monotonic() >= end or sum(one.begun for one in all_) >= requests_max
        if over and all(one.is_idle for one in all_):
            break
        if time.monotonic() > end + DRAIN_SECONDS_MAX:
            sys.exit("replay: responses are missing")
    if not arguments.number("answers", 1):
        _wait_for_ends(all_, result)
    result.records = result.requests * arguments.number("records", 1)
    return result


def _wait_for_ends(all_: list[Exchange], result: Result) -> None:
    for one in all_:
        one.socket.setblocking(True)
        one.socket.shutdown(socket.SHUT_WR)
        if one.socket.recv(1):
            result.note_error(UNCLEAN_END)
        result.requests += one.begun


class Reading:
    """A connection of a fetch, with one request in flight."""

    def __init__(self, arguments: Arguments, frame: bytearray, result: Result, start: int, end: int) -> None:
        self.socket = arguments.connect()
        self.offset = start
        self.end = end
        self._frame = frame
        self._offset_at = arguments.number("offset_at")
        self._check = arguments.number("check", 1)
        self._result = result

    def ask(self) -> None:
        _INT64.pack_into(self._frame, self._offset_at, self.offset)
        self.socket.sendall(self._frame)

    def take_answer(self) -> bool:
        """Receive a whole response; return False if it is invalid."""
        size = int(_UINT32.unpack(_receive(self.socket, 4))[0])
        answer = _receive(self.socket, size)
        try:
            response = fetch_codec.decode_response(answer, _RESPONSE_BODY_AT - 4, size, FETCH_VERSION)
            partition = response.responses[0].partitions[0]
        except (ProtocolError, IndexError):
            self._result.note_error(UNREADABLE)
            return False
        if response.error_code or partition.error_code:
            self._result.note_error(response.error_code or partition.error_code)
            return False
        self._take_batches(memoryview(partition.records or b""))
        return True

    def _take_batches(self, records: memoryview) -> None:
        result = self._result
        while len(records) >= HEADER_SIZE:
            fields = HEADER.unpack_from(records)
            size = LOG_OVERHEAD + fields[LENGTH]
            if size > len(records):
                break
            if fields[BASE_OFFSET] != self.offset:
                result.note_error(GAP)
            if self._check and checksum(records[:size]) != fields[CRC]:
                result.note_error(CORRUPT_MESSAGE)
            self.offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
            result.records += fields[RECORD_COUNT]
            result.bytes += size
            records = records[size:]


def fetch(arguments: Arguments) -> Result:
    ranges = [tuple(map(int, text.split(":"))) for text in arguments.text("ranges").split(",")]
    frames = arguments.frames(arguments.number("frame_bytes"), len(ranges))
    result = Result()
    readings = [Reading(arguments, f, result, *range_) for f, range_ in zip(frames, ranges, strict=True)]
    open_ = {one.socket.fileno(): one for one in readings if one.offset < one.end}
    result.began = time.monotonic()
    for one in open_.values():
        one.ask()
    poller = select.epoll()
    for descriptor in open_:
        poller.register(descriptor, select.EPOLLIN)
    while open_ and time.monotonic() < result.began + arguments.seconds():
        for descriptor, _event in poller.poll(WAIT_SECONDS):
            one = open_[descriptor]
            result.requests += 1
            if one.take_answer() and one.offset < one.end:
                one.ask()
            else:
                poller.unregister(descriptor)
                del open_[descriptor]
    poller.close()
    if open_ and arguments.number("must_end", 1):
        result.note_error(NOT_REACHED)
    return result


def roundtrip(arguments: Arguments) -> Result:
    with open(arguments.text("file"), "rb") as file:
        produced = bytearray(file.read(arguments.number("frame_bytes")))
        fetched = bytearray(file.read(arguments.number("fetch_bytes")))
    result, acknowledged = Result(), Result()  # not counted in the times and bytes of the round trips
    producer = Exchange(arguments, produced, acknowledged, 0)
    producer.socket.setblocking(True)
    reading = Reading(arguments, fetched, result, arguments.number("offset"), 0)
    while acknowledged.requests < arguments.number("requests") and not (result.errors or acknowledged.errors):
        reading.end = reading.offset + 1
        reading.ask()
        time.sleep(arguments.number("pause_us") / 1e6)
        sent_ns = time.monotonic_ns()
        producer.send_more(may_begin=True)
        while reading.take_answer() and reading.offset < reading.end:
            producer.await_answers()  # a refused record never arrives
            if acknowledged.errors:
                break
            reading.ask()
        result.note_latency(sent_ns)
        producer.await_answers()
    result.requests = acknowledged.requests
    if acknowledged.errors:
        result.note_error(acknowledged.first_error)
    return result


def _receive(peer: socket.socket, count: int) -> bytearray:
    received = bytearray(count)
    view, have = memoryview(received), 0
    while have < count:
        part = peer.recv_into(view[have:])
        if not part:
            sys.exit("replay: the broker closed a connection")
        have += part
    return received


def main(words: list[str]) -> None:
    modes = {"exchange": exchange, "fetch": fetch, "roundtrip": roundtrip}
    result = modes[words[0]](Arguments(words[1:]))
    result.print()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])

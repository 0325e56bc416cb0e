"""Evaluation runs: producers at a steady rate, and consumers that write all records to files.

Each message names its producer and its number, so that acknowledged messages can be compared with the files of the
consumers, whatever happened to the brokers in between.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from headrace.bench.errors import BenchError
from headrace.bench.histograms import bucket_of, percentile_us
from headrace.bench.topics import create_topics
from headrace.client import LATEST, Admin, Consumer, Delivery, Producer, TopicPartition
from headrace.client.errors import ClientError
from headrace.model.errors import ErrorCode

POLL_MS = 200
POLL_RECORDS_MAX = 1_000
DELIVERY_TIMEOUT_MS = 120_000
SILENCE_SECONDS_MAX = 30
"""A consumer that reads up to the current end gives up after this time without records."""
STOP_SECONDS_MAX = 2.0
"""Time limit for stopped clients to finish their current operation."""


class ProducerOutcome(NamedTuple):
    producer: int
    acknowledged: int
    failed: int
    p50_us: float | None
    p99_us: float | None
    longest_gap_ms: float
    """The longest time between two acknowledgements, or from the last one until the end."""

    first_failure: str


class ConsumerOutcome(NamedTuple):
    consumer: int
    records: int
    partitions: int
    file: str
    failures: int
    """Number of failed polls, for example while brokers restarted."""

    first_failure: str


def make_topic(bootstrap: str, topic: str, *, partitions: int) -> None:
    """Create the topic if it does not exist."""
    with Admin(bootstrap) as admin:
        (described,) = admin.topics([topic])
    if described.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        create_topics(bootstrap, [topic], partitions=partitions)


def message_text(producer: int, number: int) -> bytes:
    return f"producer-{producer} message-{number}".encode()


def run_producers(
    bootstrap: str, topic: str, *, producers: int, interval_ms: float, seconds: float
) -> tuple[list[ProducerOutcome], bool]:
    """Run producers that each send a message every `interval_ms` and wait for its acknowledgement.

    Return their outcomes, and whether the run was completed; Ctrl-C ends it early.
    """
    senders = [_Sender(number) for number in range(producers)]

    send = [partial(one.send_all, bootstrap, topic, interval_ms=interval_ms, seconds=seconds) for one in senders]
    try:
        is_done = _run_together(send)
        return [sender.outcome() for sender in senders], is_done
    finally:
        for sender in senders:
            sender.give_up()


class _Sender:
    """A producer, with the outcome of its messages so far."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._producer: Producer | None = None
        self._times: Counter[int] = Counter()
        self._failed = 0
        self._first_failure = ""
        self._longest_gap = 0.0
        self._acknowledged_at = 0.0

    def send_all(
        self, bootstrap: str, topic: str, stopped: threading.Event, *, interval_ms: float, seconds: float
    ) -> None:
        """Send messages at the interval; after an outage, catch up until the time is over and a message fails."""
        began = self._acknowledged_at = time.monotonic()
        with Producer(
            bootstrap_servers=bootstrap,
            client_id=f"producer-{self._number}",
            linger_ms=0,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
        ) as producer:
            self._producer = producer
            for number in count():
                due = began + number * interval_ms / 1000
                if due >= began + seconds or stopped.wait(max(0.0, due - time.monotonic())):
                    return
                if not self._send(producer, topic, number) and time.monotonic() >= began + seconds:
                    return

    def _send(self, producer: Producer, topic: str, number: int) -> bool:
        sent_ns = time.monotonic_ns()
        failure = ""
        try:
            text = message_text(self._number, number)
            # Checked in any case, so that the client does not warn about an abandoned delivery.
            producer.send(topic, text, key=b"%d" % self._number, on_delivery=Delivery.error).result()
        except ClientError as error:
            failure = str(error)
        now = time.monotonic()
        self._longest_gap = max(self._longest_gap, now - self._acknowledged_at)
        if failure:
            self._failed += 1
            self._first_failure = self._first_failure or failure
        else:
            self._times[bucket_of(time.monotonic_ns() - sent_ns)] += 1
            self._acknowledged_at = now
        return not failure

    def give_up(self) -> None:
        """Abandon a message that is still in flight at the end; the exit of the program would wait for it."""
        if self._producer is not None:
            with suppress(ClientError):
                self._producer.close(timeout_ms=0)

    def outcome(self) -> ProducerOutcome:
        times = dict(self._times)
        p50_us, p99_us = (percentile_us(times, part) if times else None for part in (0.5, 0.99))
        return ProducerOutcome(
            self._number,
            sum(times.values()),
            self._failed,
            p50_us,
            p99_us,
            self._longest_gap * 1000,
            self._first_failure,
        )


def run_consumers(
    bootstrap: str, topic: str, *, consumers: int, folder: Path, seconds: float
) -> tuple[list[ConsumerOutcome], bool]:
    """Distribute the partitions to consumers that write `partition offset timestamp key value` lines to files.

    They read from the beginning for this many seconds or, with 0, up to the current end. Return their outcomes, and
    whether the run was completed; Ctrl-C ends it early.
    """
    ends = _ends(bootstrap, topic)
    readers = [
        _Reader(number, folder, {one: end for one, end in ends.items() if one.partition % consumers == number})
        for number in range(consumers)
    ]

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for reader in readers:
            reader.path.write_bytes(b"")
    except OSError as error:
        raise BenchError(f"{folder} cannot be written to: {error.strerror}") from None
    is_done = _run_together([partial(reader.read_all, bootstrap, seconds=seconds) for reader in readers])
    return [reader.outcome() for reader in readers], is_done


def _ends(bootstrap: str, topic: str) -> dict[TopicPartition, int]:
    with Admin(bootstrap) as admin:
        (described,) = admin.topics([topic])
        if described.error != ErrorCode.NONE:
            raise BenchError(f'topic "{topic}" cannot be read: {described.error.name}')
        wanted = {TopicPartition(topic, one.partition): LATEST for one in described.partitions}
        return {partition: at.offset for partition, at in admin.offsets(wanted).items()}


class _Reader:
    """A consumer, with the outcome so far."""

    def __init__(self, number: int, folder: Path, ends: Mapping[TopicPartition, int]) -> None:
        self._number = number
        self.path = folder / f"consumer-{number}.txt"
        self._ends = ends
        self._records = 0
        self._failures = 0
        self._first_failure = ""

    def read_all(self, bootstrap: str, stopped: threading.Event, *, seconds: float) -> None:
        began = heard = time.monotonic()
        with (
            self.path.open("wb") as file,
            Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer,
        ):
            consumer.assign(self._ends)
            while self._ends and not stopped.is_set():
                if time.monotonic() >= began + seconds if seconds else self._is_at_the_ends(consumer):
                    return
                try:
                    records = consumer.poll(timeout_ms=POLL_MS, max_records=POLL_RECORDS_MAX)
                except ClientError as error:
                    self._note(error)
                    if not seconds:
                        raise
                    stopped.wait(POLL_MS / 1000)
                    continue  # brokers may restart while an evaluation runs
                for record in records:
                    head = f"{record.partition} {record.offset} {record.timestamp} ".encode()
                    file.write(head + _one_line(record.key) + b" " + _one_line(record.value) + b"\n")
                self._records += len(records)
                file.flush()
                heard = time.monotonic() if records else heard
                if not seconds and time.monotonic() - heard > SILENCE_SECONDS_MAX:
                    raise BenchError(f"consumer {self._number} has received nothing for {SILENCE_SECONDS_MAX} s")

    def _is_at_the_ends(self, consumer: Consumer) -> bool:
        return all(consumer.position(partition) >= end for partition, end in self._ends.items())

    def _note(self, failure: ClientError) -> None:
        self._failures += 1
        self._first_failure = self._first_failure or str(failure)

    def outcome(self) -> ConsumerOutcome:
        return ConsumerOutcome(
            self._number, self._records, len(self._ends), str(self.path), self._failures, self._first_failure
        )


def _one_line(content: bytes | None) -> bytes:
    """Escape line ends and backslashes; return a hyphen for null."""
    return b"-" if content is None else content.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")


def _run_together(works: Sequence[Callable[[threading.Event], None]]) -> bool:
    """Run each in a thread; return False if Ctrl-C ended them. A failure of one ends all and is raised."""
    stopped = threading.Event()
    failures: list[BaseException] = []

    def carry_out(work: Callable[[threading.Event], None]) -> None:
        try:
            work(stopped)
        except BaseException as failure:
            failures.append(failure)
            stopped.set()

    # Daemon threads: a client that waits for an unreachable broker must not delay the exit of the command.
    threads = [threading.Thread(target=carry_out, args=(work,), daemon=True) for work in works]
    is_done = True
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        is_done = False
    finally:
        stopped.set()
        deadline = time.monotonic() + STOP_SECONDS_MAX
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
    if failures and is_done:
        raise failures[0]
    return is_done

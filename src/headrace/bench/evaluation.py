"""Evaluation runs: many small producers at a steady pace, and consumers that write down all they get.

Each message says who sent it and its number, so that what producers had acknowledged can be compared with what
consumers wrote, whatever happened to the brokers meanwhile.
"""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from headrace.bench.errors import BenchError
from headrace.bench.histograms import histogram_of, percentile_us
from headrace.bench.topics import create_topics
from headrace.client import LATEST, Admin, Consumer, Producer, TopicPartition
from headrace.client.errors import ClientError
from headrace.model.errors import ErrorCode

POLL_MS = 200
POLL_RECORDS_MAX = 1_000
DELIVERY_TIMEOUT_MS = 120_000


class ProducerOutcome(NamedTuple):
    producer: int
    acknowledged: int
    failed: int
    p50_us: float
    p99_us: float
    longest_gap_ms: float
    """Between two acknowledgements: how long it could not write."""

    first_failure: str


class ConsumerOutcome(NamedTuple):
    consumer: int
    records: int
    partitions: int
    file: str


def make_topic(bootstrap: str, topic: str, *, partitions: int) -> None:
    """Unless it is there already."""
    with Admin(bootstrap) as admin:
        (described,) = admin.topics([topic])
    if described.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        create_topics(bootstrap, [topic], partitions=partitions)


def message_text(producer: int, number: int) -> bytes:
    return f"producer-{producer} message-{number}".encode()


def run_producers(
    bootstrap: str, topic: str, *, producers: int, interval_ms: float, seconds: float
) -> list[ProducerOutcome]:
    """So many producers, each sending one message every `interval_ms` and waiting for its acknowledgement."""
    produce = partial(_produce, bootstrap, topic, interval_ms, seconds)
    with ThreadPoolExecutor(producers) as pool:
        return list(pool.map(produce, range(producers)))


def _produce(bootstrap: str, topic: str, interval_ms: float, seconds: float, producer_number: int) -> ProducerOutcome:
    times: list[float] = []
    failures: list[str] = []
    longest_gap = 0.0
    began = last = time.monotonic()
    with Producer(bootstrap_servers=bootstrap, client_id=f"producer-{producer_number}") as producer:
        number = 0
        while (due := began + number * interval_ms / 1000) < began + seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            sent = time.monotonic()
            try:
                delivery = producer.send(topic, message_text(producer_number, number), key=b"%d" % producer_number)
                producer.flush()
                delivery.result(DELIVERY_TIMEOUT_MS)
                times.append(time.monotonic() - sent)
                longest_gap, last = max(longest_gap, time.monotonic() - last), time.monotonic()
            except ClientError as error:
                failures.append(str(error))
            number += 1
    histogram = histogram_of(times)
    return ProducerOutcome(
        producer_number,
        len(times),
        len(failures),
        percentile_us(histogram, 0.5),
        percentile_us(histogram, 0.99),
        longest_gap * 1000,
        failures[0] if failures else "",
    )


def run_consumers(bootstrap: str, topic: str, *, consumers: int, folder: Path, seconds: float) -> list[ConsumerOutcome]:
    """Partitions are dealt out to consumers; each writes `partition offset timestamp key value` lines to its file.

    They read from the beginning, for so many seconds; with 0, up to what was there when they began.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ends = _ends(bootstrap, topic)
    consume = partial(_consume, bootstrap, ends, consumers, folder, seconds)
    with ThreadPoolExecutor(consumers) as pool:
        return list(pool.map(consume, range(consumers)))


def _ends(bootstrap: str, topic: str) -> dict[TopicPartition, int]:
    with Admin(bootstrap) as admin:
        (described,) = admin.topics([topic])
        if described.error != ErrorCode.NONE:
            raise BenchError(f'topic "{topic}" cannot be read: {described.error.name}')
        wanted = {TopicPartition(topic, one.partition): LATEST for one in described.partitions}
        return {partition: at.offset for partition, at in admin.offsets(wanted).items()}


def _consume(
    bootstrap: str, ends: Mapping[TopicPartition, int], consumers: int, folder: Path, seconds: float, number: int
) -> ConsumerOutcome:
    path = folder / f"consumer-{number}.txt"
    own = {partition: end for partition, end in ends.items() if partition.partition % consumers == number}
    count = 0
    deadline = time.monotonic() + seconds if seconds else None
    with path.open("wb") as file, Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(own)
        while own and not _is_over(consumer, own, deadline):
            try:
                records = consumer.poll(POLL_MS, POLL_RECORDS_MAX)
            except ClientError:
                if deadline is None:
                    raise
                continue  # brokers may come and go while an evaluation runs
            for record in records:
                head = f"{record.partition} {record.offset} {record.timestamp} ".encode()
                file.write(head + (record.key or b"-") + b" " + (record.value or b"-") + b"\n")
            count += len(records)
            file.flush()
    return ConsumerOutcome(number, count, len(own), str(path))


def _is_over(consumer: Consumer, ends: Mapping[TopicPartition, int], deadline: float | None) -> bool:
    if deadline is not None:
        return time.monotonic() >= deadline
    return all(consumer.position(partition) >= end for partition, end in ends.items())

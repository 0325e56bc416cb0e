"""Headrace's Python client beside kafka-python, aiokafka and confluent-kafka: one broker, one run, a table.

    python tools/client_figures.py [--messages 200000] [--rounds 3]

Each client runs in a process of its own, one after the other, and the best of the rounds counts. On a machine that is
busy with other things the processor time per message says more than messages per second.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from headrace.testing import EmbeddedBroker

SIZES_BYTES = (100, 1_000)
BATCH_BYTES = 16 * 1024
LINGER_MS = 5
RUN_S_MAX = 300
TOPIC = "figures"
MEMORY_SETTLE_MS = 2_000
IMPORT_ROUNDS = 6

Job = Callable[[str, str, int, int], None]
"""(servers, topic, messages, bytes of each)"""


def produce_headrace(servers: str, topic: str, messages: int, size: int) -> None:
    from headrace import Producer

    value = bytes(size)
    with Producer(servers, batch_size=BATCH_BYTES, linger_ms=LINGER_MS) as producer:
        for _ in range(messages):
            producer.send(topic, value)


def produce_headrace_aio(servers: str, topic: str, messages: int, size: int) -> None:
    from headrace.aio import Producer

    async def send() -> None:
        value = bytes(size)
        async with Producer(servers, batch_size=BATCH_BYTES, linger_ms=LINGER_MS) as producer:
            for _ in range(messages):
                await producer.send(topic, value)

    asyncio.run(send())


def produce_kafka_python(servers: str, topic: str, messages: int, size: int) -> None:
    from kafka import KafkaProducer

    value = bytes(size)
    producer = KafkaProducer(bootstrap_servers=servers, batch_size=BATCH_BYTES, linger_ms=LINGER_MS)
    for _ in range(messages):
        producer.send(topic, value)
    producer.flush()
    producer.close()


def produce_aiokafka(servers: str, topic: str, messages: int, size: int) -> None:
    from aiokafka import AIOKafkaProducer

    async def send() -> None:
        value = bytes(size)
        options = {"max_batch_size": BATCH_BYTES, "linger_ms": LINGER_MS, "enable_idempotence": True}
        producer = AIOKafkaProducer(bootstrap_servers=servers, **options)
        await producer.start()
        for _ in range(messages):
            await producer.send(topic, value)
        await producer.stop()

    asyncio.run(send())


def produce_confluent(servers: str, topic: str, messages: int, size: int) -> None:
    from confluent_kafka import Producer

    value = bytes(size)
    options = {"batch.size": BATCH_BYTES, "linger.ms": LINGER_MS, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": servers, **options})
    for _ in range(messages):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush()


def consume_headrace(servers: str, topic: str, messages: int, size: int) -> None:
    from headrace import Consumer

    with Consumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        for count, record in enumerate(consumer, 1):
            assert len(record.value) == size
            if count == messages:
                break


def consume_headrace_batches(servers: str, topic: str, messages: int, size: int) -> None:
    from headrace import Consumer

    count = 0
    with Consumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        for batch in consumer.batches():
            for value in batch.values():
                assert value is not None and len(value) == size  # noqa: PT018
            count += len(batch)
            if count >= messages:
                break


def consume_kafka_python(servers: str, topic: str, messages: int, size: int) -> None:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest", group_id=None)
    for count, record in enumerate(consumer, 1):
        assert len(record.value) == size
        if count == messages:
            break
    consumer.close()


def consume_aiokafka(servers: str, topic: str, messages: int, size: int) -> None:
    from aiokafka import AIOKafkaConsumer

    async def read() -> None:
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest")
        await consumer.start()
        count = 0
        async for record in consumer:
            assert len(record.value) == size
            count += 1
            if count == messages:
                break
        await consumer.stop()

    asyncio.run(read())


def consume_confluent(servers: str, topic: str, messages: int, size: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "figures", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = 0
    while count < messages:
        for message in consumer.consume(1_000, 1.0):
            assert len(message.value() or b"") == size
            count += 1
    consumer.close()


JOBS: dict[str, Job] = {
    "produce, headrace": produce_headrace,
    "produce, headrace.aio": produce_headrace_aio,
    "produce, kafka-python": produce_kafka_python,
    "produce, aiokafka": produce_aiokafka,
    "produce, confluent-kafka": produce_confluent,
    "consume, headrace, record by record": consume_headrace,
    "consume, headrace, batches()": consume_headrace_batches,
    "consume, kafka-python": consume_kafka_python,
    "consume, aiokafka": consume_aiokafka,
    "consume, confluent-kafka, consume(1000)": consume_confluent,
}

MEMORY_PROGRAM = """
import resource, sys
def mb():
    return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize() / 2**20
before = mb()
from headrace import Consumer
with Consumer("{topic}", bootstrap_servers="{servers}", group_id="idle") as consumer:
    consumer.poll({settle_ms})
    print(mb() - before)
"""
IMPORT_PROGRAM = """
import time
began, worked = time.perf_counter(), time.process_time()
from headrace import Consumer, Producer
print((time.perf_counter() - began) * 1000, (time.process_time() - worked) * 1000)
"""


def run_one(name: str, servers: str, topic: str, messages: int, size: int) -> tuple[float, float]:
    """Messages per second and processor microseconds per message, in a process of its own."""
    command = [sys.executable, __file__, "--one", json.dumps([name, servers, topic, messages, size])]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S_MAX)
    if ran.returncode:
        raise RuntimeError(f"{name}: {ran.stderr}")
    rate, cost = json.loads(ran.stdout.splitlines()[-1])
    return rate, cost


def measure(name: str, servers: str, topic: str, messages: int, size: int) -> None:
    job = JOBS[name]
    job(servers, topic, 1, size)  # Imports and first connections are not what is measured.
    began, worked = time.perf_counter(), time.process_time()
    job(servers, topic, messages, size)
    took, work = time.perf_counter() - began, time.process_time() - worked
    print(json.dumps([messages / took, work / messages * 1e6]))


def numbers(program: str, bytecode: str) -> list[float]:
    """What a program prints; as installed packages have bytecode, it gets some too, in that folder."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(number) for number in ran.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(*json.loads(options.one))
        return
    print("| what | bytes | messages/s | processor time, µs per message |\n|---|---|---|---|")
    with EmbeddedBroker(process=True) as broker:
        servers = broker.bootstrap_servers
        for size in SIZES_BYTES:
            messages = options.messages * SIZES_BYTES[0] // size * (2 if size > SIZES_BYTES[0] else 1)
            source = broker.create_topic(f"{TOPIC}-{size}")
            produce_headrace(servers, source, messages, size)
            for name in JOBS:
                found = []
                for number in range(options.rounds):
                    topic = source
                    if name.startswith("produce"):
                        topic = broker.create_topic(broker.unused_topic_name(f"{name}-{size}-{number}"))
                    found.append(run_one(name, servers, topic, messages, size))
                rate, cost = max(rate for rate, _ in found), min(cost for _, cost in found)
                print(f"| {name} | {size} | {rate:,.0f} | {cost:.2f} |", flush=True)
        program = MEMORY_PROGRAM.format(topic=source, servers=servers, settle_ms=MEMORY_SETTLE_MS)
        with tempfile.TemporaryDirectory() as bytecode:
            memory_mb = min(numbers(program, bytecode)[0] for _ in range(options.rounds))
            imports = [numbers(IMPORT_PROGRAM, bytecode) for _ in range(IMPORT_ROUNDS)]
    print(f"\nAn idle consumer of a group takes {memory_mb:.1f} MB more than Python before the import.")
    print(
        f"`from headrace import Consumer, Producer` takes {min(each[0] for each in imports):.0f} ms, of which "
        f"{min(each[1] for each in imports):.0f} ms of processor time."
    )


if __name__ == "__main__":
    main()

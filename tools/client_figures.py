"""Headrace's Python client beside kafka-python, aiokafka and confluent-kafka: one broker, one run, a table.

    python tools/client_figures.py [--messages 200000] [--rounds 3] [--write docs/performance.md]

Each client runs in a process of its own, one after the other, in rounds that go through all of them; the best round
counts. Every client looks at every value. On a machine that is busy with other things the processor time per message
says more than messages per second.
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
from pathlib import Path

from headrace.testing import EmbeddedBroker

SIZES_BYTES = (100, 1_000)
CONSUMED_SHARE = 3
"""Number of times that the produced messages are read: reading is quicker, and short runs say little."""

BATCH_BYTES = 16 * 1024
LINGER_MS = 5
RUN_S_MAX = 300
TOPIC = "figures"
MEMORY_SETTLE_MS = 2_000
IMPORT_ROUNDS = 6
IMPORT_MS_MAX = 120
MEMORY_MB_MAX = 30
BEGIN = "<!-- Written by `python tools/client_figures.py --write`, not by hand. -->"
END = "<!-- End of what `python tools/client_figures.py --write` wrote. -->"
FIGURES_FILE = Path("performance") / "client.json"
"""The rates of every client, relative to the page that is written."""

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
                assert len(value or b"") == size
                count += 1
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
    """Return what a program prints; as installed packages have bytecode, it gets some too, in that folder."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(number) for number in ran.stdout.split()]


Figures = dict[tuple[str, int], tuple[float, float]]
"""By job and size: the messages per second, and the processor time per message."""


def measure_all(servers: str, new_topic: Callable[[str], str], messages: int, rounds: int) -> Figures:
    best: Figures = {}
    for size in SIZES_BYTES:
        source, consumed = new_topic(f"{TOPIC}-{size}"), CONSUMED_SHARE * messages
        produce_headrace(servers, source, consumed, size)
        for _ in range(rounds):
            for name in JOBS:
                is_producer = name.startswith("produce")
                topic = new_topic(f"{name}-{size}") if is_producer else source
                rate, cost = run_one(name, servers, topic, messages if is_producer else consumed, size)
                before = best.get((name, size), (0.0, float("inf")))
                best[name, size] = max(rate, before[0]), min(cost, before[1])
    return best


def goals(figures: Figures, import_ms: float, memory_mb: float) -> list[tuple[str, str, bool]]:
    """Return the target of the client, the figure that it reached, and whether that is enough."""

    def ratio(one: str, other: str) -> list[float]:
        return [figures[one, size][0] / figures[other, size][0] for size in SIZES_BYTES]

    def said(ratios: list[float]) -> str:
        return " and ".join(f"{each:.1f}" for each in ratios) + " times, 100 B and 1 KB"

    slow = ratio("produce, headrace", "produce, kafka-python")
    loop = ratio("produce, headrace.aio", "produce, aiokafka")
    each = ratio("consume, headrace, record by record", "consume, kafka-python")
    whole = ratio("consume, headrace, batches()", "consume, confluent-kafka, consume(1000)")
    return [
        ("produce at least 3 times kafka-python's rate", said(slow), min(slow) >= 3),
        ("produce ahead of aiokafka", said(loop), min(loop) > 1),
        ("consume record by record at least 2 times kafka-python's rate", said(each), min(each) >= 2),
        ("`batches()` ahead of confluent-kafka", said(whole), min(whole) > 1),
        ("import in at most 120 ms", f"{import_ms:.0f} ms", import_ms <= IMPORT_MS_MAX),
        ("an idle consumer of a group: at most 30 MB above Python", f"{memory_mb:.1f} MB", memory_mb <= MEMORY_MB_MAX),
    ]


def command_line(options: argparse.Namespace) -> str:
    return f"python tools/client_figures.py --messages {options.messages} --rounds {options.rounds}"


def measure_and_judge(options: argparse.Namespace) -> tuple[Figures, list[tuple[str, str, bool]]]:
    with EmbeddedBroker(process=True) as broker, tempfile.TemporaryDirectory() as bytecode:
        servers = broker.bootstrap_servers
        figures = measure_all(
            servers, lambda name: broker.create_topic(broker.unused_topic_name(name)), options.messages, options.rounds
        )
        program = MEMORY_PROGRAM.format(topic=f"{TOPIC}-idle", servers=servers, settle_ms=MEMORY_SETTLE_MS)
        broker.create_topic(f"{TOPIC}-idle")
        memory_mb = min(numbers(program, bytecode)[0] for _ in range(options.rounds))
        import_ms = min(numbers(IMPORT_PROGRAM, bytecode)[0] for _ in range(IMPORT_ROUNDS))
    return figures, goals(figures, import_ms, memory_mb)


def figure_lines(figures: Figures) -> list[str]:
    lines = ["| what | bytes | messages/s | processor time, µs per message |", "|---|---|---|---|"]
    return lines + [
        f"| {name} | {size} | {figures[name, size][0]:,.0f} | {figures[name, size][1]:.2f} |"
        for size in SIZES_BYTES
        for name in JOBS
    ]


def goal_lines(command: str, reached: list[tuple[str, str, bool]]) -> list[str]:
    return [
        f"`{command}`: every client",
        f"alone, one after the other, against one Headrace broker on {os.cpu_count()} cores, batches of 16 KB and 5 ms",
        "of linger for all, the best of the rounds.",
        "",
        "| goal | reached | |",
        "|---|---|---|",
        *(f"| {goal} | {text} | {'reached' if enough else 'missed'} |" for goal, text, enough in reached),
    ]


def figures_text(command: str, figures: Figures, reached: list[tuple[str, str, bool]]) -> str:
    """Return the rates of every client as JSON, one per line."""
    rows = [
        {"job": name, "bytes": size, "messages_per_second": round(rate), "cpu_us_per_message": round(cost, 2)}
        for (name, size), (rate, cost) in figures.items()
    ]
    judged = [
        {"goal": goal, "reached": text, "verdict": "reached" if enough else "missed"} for goal, text, enough in reached
    ]
    members: dict[str, list] = {"figures": rows, "goals": judged}
    lists = (
        f'  "{name}": [\n' + ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in values) + "\n  ]"
        for name, values in members.items()
    )
    return "{\n" + f'  "command": {json.dumps(command)},\n' + ",\n".join(lists) + "\n}\n"


def write(page: Path, written: str, figures: str) -> None:
    """Put the goals between the marks of the page and the figures beside it; the rest of the page is kept."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{page} has no marks to write between: {BEGIN}")
    before, _, rest = text.partition(BEGIN)
    link = f"The rates [of every client]({FIGURES_FILE.as_posix()})."
    page.write_text(f"{before}{BEGIN}\n\n{written}\n\n{link}\n\n{END}{rest.partition(END)[2]}")
    target = page.parent / FIGURES_FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--messages", type=int, default=200_000, help="produced by each client, three times as many read"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the goals on this page, the rates beside it")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(*json.loads(options.one))
        return
    figures, reached = measure_and_judge(options)
    command = command_line(options)
    written = "\n".join(goal_lines(command, reached))
    print("\n".join((*figure_lines(figures), "", written)))
    if options.write is not None:
        write(options.write, written, figures_text(command, figures, reached))


if __name__ == "__main__":
    main()

"""Sample orders of a shop for the demo and the pipeline benchmark: many from few customers, some late, some broken.

`python -m headrace.bench.orders BOOTSTRAP TOPIC COUNT SEED` sends them and reports how many are acknowledged.
"""

import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from headrace.client import Producer

PIPELINE_FILE = Path(__file__).with_name("orders.yml")
"""The pipeline for these orders: orders per country and minute."""
TOPIC, RESULTS, DEAD = "orders", "orders-per-minute", "orders-dead"
"""The topics in the pipeline file."""

COUNTRIES = {"de": 34, "fr": 21, "it": 14, "es": 10, "nl": 8, "pl": 6, "se": 4, "pt": 2, "ie": 1}
CUSTOMERS = 10_000
HOT_CUSTOMERS = 50
HOT_SHARE = 0.3
LATE_SHARE, BROKEN_SHARE = 0.003, 0.001
LATE_SECONDS = (300, 1_800)
EPOCH = 1_780_228_800  # 2026-05-31T12:00:00Z
SECONDS = 3_600
"""Event time over which the orders are distributed."""
CLOSING_COUNTRY = "closing"
CLOSING_SECONDS = 36_000
"""Event time between the last order and the closing records: enough to close all windows."""
REPORT_EVERY = 20_000
BATCH_BYTES = 256 * 1024
BROKEN = (
    '{"id": "%d", "customer": "c1", "amo',
    '{"customer": "c1", "at": %d}',
    '{"id": "%d", "customer": 1, "at": "never"}',
)


class Order(NamedTuple):
    customer: int
    value: bytes

    @property
    def key(self) -> bytes:
        return b"c%d" % self.customer


def orders(count: int, *, seed: int, seconds: int = SECONDS) -> Iterator[Order]:
    """Yield orders in the order of their event times, except for late ones."""
    chance = random.Random(seed)  # noqa: S311  (the same orders each time)
    countries = chance.choices(list(COUNTRIES), list(COUNTRIES.values()), k=1_000)
    clock = {second: _clock_text(EPOCH + second) for second in range(-LATE_SECONDS[1] - 1, seconds + 1)}
    for number in range(count):
        at = EPOCH + number * seconds / count
        draw = chance.random()
        is_hot = chance.random() < HOT_SHARE
        customer = int(chance.random() * (HOT_CUSTOMERS if is_hot else CUSTOMERS))
        if draw < BROKEN_SHARE:
            value = BROKEN[number % len(BROKEN)] % number
        else:
            at -= chance.uniform(*LATE_SECONDS) if draw < BROKEN_SHARE + LATE_SHARE else 0
            moment = f"{clock[int(at) - EPOCH]}.{int(at * 1000) % 1000:03}Z"
            value = (
                f'{{"id": "{number}", "customer": "c{customer}", "country": "{countries[number % 1_000]}", '
                f'"amount": {5 + draw * 95:.2f}, "at": "{moment}"}}'
            )
        yield Order(customer, value.encode())


def closing_value(seconds: int = SECONDS) -> bytes:
    """Return a record that closes the last windows; one is sent to every partition. It is not an order."""
    end = _clock_text(EPOCH + seconds + CLOSING_SECONDS)
    return f'{{"id": "end", "customer": "end", "country": "{CLOSING_COUNTRY}", "at": "{end}Z"}}'.encode()


def _clock_text(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def send_orders(bootstrap: str, topic: str, count: int, seed: int) -> Iterator[int]:
    """Send orders; yield the number sent at intervals, and the number acknowledged at the end."""
    with Producer(bootstrap, linger_ms=20, batch_size=BATCH_BYTES) as producer:
        for number, order in enumerate(orders(count, seed=seed)):
            producer.send(topic, order.value, key=order.key)
            if number % REPORT_EVERY == 0:
                yield number
        producer.flush()
        yield count
        for partition in range(producer.partition_count(topic)):
            producer.send(topic, closing_value(), partition=partition)


if __name__ == "__main__":
    for sent in send_orders(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])):
        print(sent, flush=True)

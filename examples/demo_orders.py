"""Orders as a shop would send them: many of few customers, some late, some broken; the demo runs it beside itself."""

import random
import sys
from datetime import UTC, datetime

from headrace import Producer

COUNTRIES = {"de": 34, "fr": 21, "it": 14, "es": 10, "nl": 8, "pl": 6, "se": 4, "pt": 2, "ie": 1}
CUSTOMERS = 10_000
HOT_CUSTOMERS = 50
HOT_SHARE = 0.3
LATE_SHARE, BROKEN_SHARE = 0.003, 0.001
LATE_SECONDS = (300, 1_800)
EPOCH = 1_780_228_800  # 2026-05-31T12:00:00Z
SECONDS = 3_600
"""Of the shop's time that the orders are spread over."""
CLOSING_COUNTRY = "closing"
REPORT_EVERY = 20_000
BATCH_BYTES = 256 * 1024
BROKEN = (
    '{"id": "%d", "customer": "c1", "amo',
    '{"customer": "c1", "at": %d}',
    '{"id": "%d", "customer": 1, "at": "never"}',
)


def send_orders(bootstrap: str, topic: str, count: int, seed: int) -> None:
    """Tells on standard output how many are acknowledged."""
    chance = random.Random(seed)
    countries = chance.choices(list(COUNTRIES), list(COUNTRIES.values()), k=1_000)
    clock = {second: _clock_text(EPOCH + second) for second in range(-LATE_SECONDS[1] - 1, SECONDS + 1)}
    with Producer(bootstrap, linger_ms=20, batch_size=BATCH_BYTES) as producer:
        for number in range(count):
            at = EPOCH + number * SECONDS / count
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
            producer.send(topic, value.encode(), key=b"c%d" % customer)
            if number % REPORT_EVERY == 0:
                print(number, flush=True)
        producer.flush()
        print(count, flush=True)
        close_windows(producer, topic)


def _clock_text(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def close_windows(producer: Producer, topic: str) -> None:
    """One record far ahead in every partition: no window is awaited any more after it. It is no order."""
    end = _clock_text(EPOCH + 10 * SECONDS)
    for partition in range(producer.partition_count(topic)):
        value = f'{{"id": "end", "customer": "end", "country": "{CLOSING_COUNTRY}", "at": "{end}Z"}}'
        producer.send(topic, value.encode(), partition=partition)


if __name__ == "__main__":
    send_orders(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

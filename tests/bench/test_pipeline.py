"""The orders that `bench pipeline` sends, their pace, and its judgement of a queue that grows or does not."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.bench.errors import RunRejected
from headrace.bench.figures import Round
from headrace.bench.orders import TOPIC, closing_value, orders
from headrace.client.blocking.whole_topics import read_topic
from headrace.testing.embedded import EmbeddedBroker
from tools.bench import pipeline
from tools.bench.paced_orders import TICK_SECONDS, PacedSender, encoded_ticks

pytestmark = pytest.mark.process

PARTITIONS = 4
COUNT, PER_SECOND = 2_000, 20_000


def test_the_orders_of_a_seed_are_the_same_each_time() -> None:
    first, second = (list(orders(500, seed=7)) for _ in range(2))
    assert first == second
    assert len({order.customer for order in first}) > 100
    assert list(orders(500, seed=8)) != first


def test_a_paced_sender_sends_every_order_and_knows_when() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        ticks = encoded_ticks(TOPIC, COUNT, partitions=PARTITIONS, per_second=PER_SECOND, seed=7)
        assert len(ticks) == COUNT / (PER_SECOND * TICK_SECONDS) + 1
        began = time.time()
        with PacedSender(broker.bootstrap_servers, ticks, partitions=PARTITIONS) as sender:
            while not sender.is_done:
                time.sleep(TICK_SECONDS)
        found = [record.value for record in read_topic({"bootstrap.servers": broker.bootstrap_servers}, TOPIC)]
    closing = [value for value in found if b'"country": "closing"' in value]
    assert len(closing) == PARTITIONS
    assert sorted(set(found) - set(closing)) == sorted(order.value for order in orders(COUNT, seed=7, seconds=8))
    assert closing[0] == closing_value(8)
    assert all(at >= began + number * TICK_SECONDS for number, at in enumerate(sender.times)), "one came too soon"
    assert sender.sent_at(0, 0) == sender.times[0]
    assert sender.sent_at(0, 10_000) is None
    assert sender.oldest(iter([(0, 10_000), (1, 10_000)])) is None
    sender.times = [2 * number * TICK_SECONDS for number in range(len(ticks))]
    assert sender.rate() == pytest.approx(COUNT / (2 * TICK_SECONDS * (len(ticks) - 2)))


def judged(waits: list[float]) -> Round:
    """Of batches that end every second, each of which has waited so long, while a hundred seconds are sent."""
    times = [float(second) for second in range(101)]
    sender = SimpleNamespace(times=times, rate=lambda: 1.0, oldest=lambda places: next(iter(places))[1])
    batches: list[dict[str, Any]] = [
        {"began_ms": 1000 * done, "seconds": 0.0, "ends": {TOPIC: {"0": done + 1 - wait}}}
        for done, wait in enumerate(waits)
    ]
    found: Any = SimpleNamespace(batches=batches)
    return pipeline._judged(found, sender, cpu_us_per_event=1.0)  # type: ignore[arg-type]


def test_a_wait_that_grows_is_not_kept_up_with() -> None:
    level = judged([3.0] * 101)
    assert pipeline.is_sustained(level)
    assert level["wait_max_seconds"] == 3.0
    growing = judged([number / 4 for number in range(101)])
    assert not pipeline.is_sustained(growing)
    with pytest.raises(RunRejected, match="send for longer"):
        judged([1.0] * 10)

"""The consumer's core against two brokers made of lists: whatever the network and the leaders do, it reads in order."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client.core.cluster import Cluster
from headrace.client.core.consumer import ConsumerCore, ConsumerSettings
from headrace.client.core.fetch_requests import FetchSettings
from headrace.client.types import EARLIEST
from headrace.model.ids import TopicPartition

from .model_cluster import TOPIC, ModelCluster, Wires

PARTITIONS = 2
STEPS = 300
FINISH_STEPS_MAX = 1_000
WEIGHTS = {
    "append": 6,
    "poll": 8,
    "serve": 8,
    "deliver": 8,
    "take": 6,
    "cut": 2,
    "wait": 4,
    "move": 1,
    "trim": 1,
    "seek": 1,
    "pause": 1,
    "resume": 1,
    "forget session": 1,
}


class World:
    def __init__(self) -> None:
        self.cluster = ModelCluster(PARTITIONS)
        self.wires = Wires(lambda node, message, answer: answer(self.cluster.answer(node, message)))
        self.now_ms = 0.0
        fetches = FetchSettings(partition_bytes_max=300)
        self.core = ConsumerCore(ConsumerSettings(reset_to=EARLIEST, fetches=fetches), Cluster())
        self.core.subscribe([TOPIC])
        self.expected = [0] * PARTITIONS
        self.trims: list[set[int]] = [{0} for _ in range(PARTITIONS)]

    def act(self, name: str, choice: int) -> None:
        index = choice % PARTITIONS
        place = TopicPartition(TOPIC, index)
        log = self.cluster.logs[index]
        is_read = place in self.core.assignment()
        match name:
            case "append":
                log.append()
            case "poll":
                self.poll()
            case "serve":
                self.wires.serve(choice)
            case "deliver":
                self.wires.deliver(choice, self.now_ms)
            case "take":
                self.take(1 + choice)
            case "cut":
                self.wires.cut(choice, self.now_ms)
            case "wait":
                self.now_ms += 60
            case "move":
                log.move()
            case "trim":
                log.trim()
                self.trims[index].add(log.start)
            case "seek" if is_read:
                offset = min(log.end, log.start + choice)
                self.core.seek(place, offset)
                self.expected[index] = offset
            case "pause" if is_read:
                self.core.pause([place])
            case "resume" if is_read:
                self.core.resume([place])
            case "forget session":
                self.cluster.sessions.pop(1 + index, None)

    def poll(self) -> float:
        calls, wakeup_ms = self.core.poll(self.now_ms)
        for pending in calls:
            self.wires.send(pending)
        return wakeup_ms

    def take(self, count: int) -> None:
        taken = self.core.take(count)
        assert len(taken) <= count
        for record in taken:
            assert int(record.value) == record.offset
            before = self.expected[record.partition]
            if record.offset != before:
                assert record.offset > before, "a position went back"
                assert record.offset in self.trims[record.partition], f"records {before} on were left out"
            self.expected[record.partition] = record.offset + 1

    def finish(self) -> None:
        """Without any more faults all that is there is read, in a bounded number of steps."""
        self.core.resume(self.core.paused())
        for step in range(FINISH_STEPS_MAX):
            ends = [log.end for log in self.cluster.logs]
            starts = [log.start for log in self.cluster.logs]
            if all(at >= end or start == end for at, start, end in zip(self.expected, starts, ends, strict=True)):
                return
            wakeup_ms = self.poll()
            if self.wires.is_quiet():
                assert wakeup_ms < float("inf"), "nothing is asked any more, and something is missing"
                self.now_ms = max(self.now_ms, wakeup_ms)
            self.now_ms += 5
            self.wires.serve(step)
            self.wires.deliver(step, self.now_ms)
            self.take(10)
        raise AssertionError(f"read to {self.expected} of {ends}")


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_records_come_in_order_and_none_is_left_out(seed: int) -> None:
    world = World()
    draw = random.Random(seed)
    for name in draw.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS):
        world.act(name, draw.randrange(6))
    for log in world.cluster.logs:
        log.append()
    world.finish()

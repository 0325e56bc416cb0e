"""Kill a leader under a producer, note who sees what when, and draw it into docs/guide/when-a-broker-dies.md.

    python -m tools.failover_timeline            # print it
    python -m tools.failover_timeline --write    # and write it into the guide

Three brokers on this machine, a partition with three replicas whose leader is not the active controller, and a producer
of librdkafka with its defaults, which sends a record every 5 ms. What the producer sees is taken from its own log.
"""

import argparse
import datetime
import logging
import re
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from headrace.bench.machine import describe
from headrace.client import Admin
from headrace.testing import EmbeddedCluster
from tests.process_groups import wait_until

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "when-a-broker-dies.md"
BEGIN = "<!-- Written by `python -m tools.failover_timeline --write`, down to the end mark: change the tool. -->"
END = "<!-- End of what `python -m tools.failover_timeline --write` wrote. -->"
TOPIC = "orders"
PAUSE_S = 0.005
LOOK_S = 0.002
SETTLE_S = 2.0
WAIT_S_MAX = 60.0
PRODUCER, CLUSTER, VICTIM = "producer", "brokers that live", "broker that was killed"
DELIVERED = re.compile(r"/(\d+): .*MessageSet with .* delivered$")
"""A line of librdkafka's log, with the node id of the broker."""
MOMENT_MS = 5
"""A moment is drawn as a bar of this length, so that it can be seen."""


class Event(NamedTuple):
    ms: int
    who: str
    what: str


class Events:
    """The first time at which each thing was seen, counted from the kill."""

    def __init__(self) -> None:
        self._killed_s = 0.0
        self._seen: dict[tuple[str, str], float] = {}

    def killed(self) -> None:
        self._killed_s = time.monotonic()

    def see(self, who: str, what: str) -> None:
        if self._killed_s:
            self._seen.setdefault((who, what), time.monotonic())

    def in_order(self) -> list[Event]:
        seen = (Event(round(1_000 * (at - self._killed_s)), *key) for key, at in self._seen.items())
        return sorted(seen, key=lambda event: event.ms)


class ProducerLog(logging.Handler):
    """Picks the events out of what librdkafka logs."""

    def __init__(self, events: Events, victim: int) -> None:
        super().__init__()
        self._events = events
        self._victim = victim

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if "Disconnected" in line or "Connection reset" in line:
            self._events.see(PRODUCER, "connection reset")
        elif "applying leader-id update" in line and "-> -1" not in line:
            self._events.see(PRODUCER, "knows the new leader")
        elif (found := DELIVERED.search(line)) and int(found[1]) != self._victim:
            self._events.see(PRODUCER, "first record acknowledged by the new leader")


def run(cluster: EmbeddedCluster, events: Events) -> int:
    """Return the node id of the victim."""
    cluster.create_topic(TOPIC, partitions=3, replicas=3, configs={"min.insync.replicas": "2"})
    controller = cluster.active_controller()
    partition = next(number for number in range(3) if cluster.leader(TOPIC, number) != controller)
    victim = cluster.leader(TOPIC, partition)
    survivors = ",".join(cluster.address(node_id) for node_id in cluster.node_ids if node_id != victim)
    stop = threading.Event()
    threads = [
        threading.Thread(
            target=_produce, args=(cluster.bootstrap_servers, partition, ProducerLog(events, victim), stop)
        ),
        threading.Thread(target=_watch, args=(survivors, partition, victim, events, stop)),
    ]
    for thread in threads:
        thread.start()
    try:
        time.sleep(SETTLE_S)
        events.killed()
        cluster.kill(victim)
        time.sleep(SETTLE_S)
        events.see(VICTIM, "is started again")
        cluster.restart(victim)
        wait_until(lambda: len(cluster.in_sync(TOPIC, partition)) == 3, "it is not in sync again", WAIT_S_MAX)
        time.sleep(2 * LOOK_S)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return victim


def _produce(bootstrap: str, partition: int, log: ProducerLog, stop: threading.Event) -> None:
    logger = logging.Logger("producer", logging.DEBUG)
    logger.addHandler(log)
    producer = Producer({"bootstrap.servers": bootstrap, "debug": "broker,topic,msg"}, logger=logger)
    while not stop.is_set():
        producer.produce(TOPIC, b"order", partition=partition)
        producer.poll(PAUSE_S)
    producer.flush(WAIT_S_MAX)


def _watch(survivors: str, partition: int, victim: int, events: Events, stop: threading.Event) -> None:
    """Ask the other brokers who leads and who is in sync, as often as they answer."""
    is_replaced = is_back = False
    with Admin(survivors) as admin:
        while not stop.is_set():
            (topic,) = admin.topics([TOPIC])
            state = topic.partitions[partition]
            if state.leader not in (victim, -1):
                events.see(CLUSTER, "another broker leads")
                is_replaced = True
            if is_replaced and victim not in state.offline:
                events.see(VICTIM, "is admitted and copies what it lacks")
                is_back = True
            if is_back and victim in state.isr:
                events.see(VICTIM, "is in sync")
            time.sleep(LOOK_S)


def drawn(events: Sequence[Event], victim: int) -> Iterator[str]:
    yield "```mermaid"
    yield "gantt"
    yield f"    title milliseconds after kill -9 of broker {victim}, the leader"
    yield "    dateFormat x"
    yield "    axisFormat %s.%L s"
    for who in dict.fromkeys(event.who for event in events):
        yield f"    section {who}"
        for event in events:
            if event.who == who:
                yield f"    {event.what} ({event.ms} ms) : milestone, {event.ms}, {MOMENT_MS}ms"
    yield "```"
    yield ""
    yield "| ms | who | what |"
    yield "|---|---|---|"
    for event in events:
        yield f"| {event.ms:,} | {event.who} | {event.what} |"


def write(text: str) -> None:
    """Replace what an earlier run wrote."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"{PAGE} has no place for the timeline"
    assert end, f"the place for the timeline in {PAGE} has no end"
    about = "; ".join(f"{name}: {value}" for name, value in describe(PAGE.parent).items())
    day = datetime.date.today().isoformat()
    PAGE.write_text(f"{before}{BEGIN}\n\nMeasured on {day} ({about}).\n\n{text}\n\n{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write it into the guide")
    arguments = parser.parse_args()
    events = Events()
    with EmbeddedCluster(brokers=3) as cluster:
        victim = run(cluster, events)
    text = "\n".join(drawn(events.in_order(), victim))
    print(text)
    if arguments.write:
        write(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

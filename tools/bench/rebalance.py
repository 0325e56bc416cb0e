"""Rebalance load: a member of a large group dies, and the others take over its partitions."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.bench.brokers import MeasuredBroker
from headrace.bench.figures import Round
from headrace.bench.topics import create_topics
from tools.bench.commits import wait_for_coordinators
from tools.bench.idle import SPARE_DESCRIPTORS, allow_descriptors
from tools.bench.members import ClassicMember, ConsumerMember, Fleet, Member

CLASSIC, CONSUMER = "classic", "consumer"
FORM_SECONDS_MAX = 120
STABLE_SECONDS_MAX = 60
WATCH_SECONDS = 0.05
"""Time before the death can be noticed, from which the broker's CPU is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceLoad:
    protocol: str
    members: int = 100
    partitions: int = 100
    session_ms: int = 6_000
    interval_ms: int = 1_000

    @property
    def name(self) -> str:
        kind = "classic protocol" if self.protocol == CLASSIC else "KIP-848"
        return f"one of {self.members} members dies, {kind}"

    def settings(self) -> Mapping[str, str]:
        """Return the broker configs with which both protocols have the same timeouts."""
        return {
            "group.consumer.session.timeout.ms": str(self.session_ms),
            "group.consumer.min.session.timeout.ms": str(self.session_ms),
            "group.consumer.heartbeat.interval.ms": str(self.interval_ms),
            "group.consumer.min.heartbeat.interval.ms": str(self.interval_ms),
        }


class RebalanceRounds:
    """Rounds with a new group each. At the end every partition must have exactly one owner."""

    def __init__(self, broker: MeasuredBroker, load: RebalanceLoad, *, topic: str) -> None:
        self._broker = broker
        self._load = load
        self._topic = topic
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        load, topic = self._load, f"{self._topic}-{self._load.protocol}-{self._round}"
        allow_descriptors(load.members + SPARE_DESCRIPTORS)
        create_topics(self._broker.address, [topic], partitions=load.partitions)
        wait_for_coordinators(self._broker.address, [topic])
        fleet = Fleet([self._member(topic, number) for number in range(load.members)])
        try:
            return self._lose_one(fleet)
        finally:
            fleet.close()

    def _member(self, topic: str, number: int) -> Member:
        address, load = self._broker.address, self._load
        if load.protocol == CONSUMER:
            return ConsumerMember(address, topic, topic, number)
        return ClassicMember(
            address,
            topic,
            topic,
            number,
            partitions=load.partitions,
            session_ms=load.session_ms,
            interval_ms=load.interval_ms,
        )

    def _lose_one(self, fleet: Fleet) -> Round:
        load, interval_seconds = self._load, self._load.interval_ms / 1000
        fleet.begin()
        fleet.run_until(lambda: self._stable(fleet, -1), seconds_max=FORM_SECONDS_MAX, what="a stable group")
        fleet.spread(interval_seconds)
        began = time.monotonic()
        fleet.run_until(
            lambda: time.monotonic() > began + 2 * interval_seconds, seconds_max=STABLE_SECONDS_MAX, what="heartbeats"
        )
        generation = max(member.generation for member in fleet.members)
        lost = fleet.members[load.members // 2]
        fleet.lose(lost)
        noticed_at = lost.heard_at + load.session_ms / 1000
        fleet.run_until(
            lambda: time.monotonic() >= noticed_at - WATCH_SECONDS,
            seconds_max=STABLE_SECONDS_MAX,
            what="the end of a session",
        )
        before = self._broker.cpu_seconds()
        fleet.run_until(lambda: self._stable(fleet, generation), seconds_max=STABLE_SECONDS_MAX, what="a rebalance")
        after = self._broker.cpu_seconds()
        figures = {"stable_seconds": max(member.settled_at for member in fleet.members) - noticed_at}
        if before is not None and after is not None:
            figures["cpu_ms"] = (after - before) * 1000
        return figures

    def _stable(self, fleet: Fleet, before: int) -> bool:
        """Tell whether all members are in one new generation and every partition has exactly one owner."""
        generations = {member.generation for member in fleet.members}
        if len(generations) > 1 or min(generations) <= before:
            return False
        owned = [part for member in fleet.members for part in member.owned]
        return len(owned) == len(set(owned)) == self._load.partitions

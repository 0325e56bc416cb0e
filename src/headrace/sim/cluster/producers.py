"""Idempotent producers that write to partitions of all brokers."""

from functools import partial
from typing import Any

from headrace.client.config import ProducerConfig
from headrace.client.loop import LoopProducer
from headrace.model.ids import TopicPartition
from headrace.sim.checkers.violation import Violation
from headrace.sim.cluster.applications import REQUEST_TIMEOUT_MS, Application

IN_FLIGHT_MAX = 12
PAUSE_MS_MAX = 300
NEVER_EXPIRES_MS = 3_600_000

NEVER_REFUSED = "an idempotent producer that retries in order is not refused"


class ProducerApplication(Application):
    _producer: LoopProducer
    _in_flight = 0
    _count = 0
    _next: tuple[bytes, TopicPartition] | None = None

    def begin(self) -> None:
        self._producer = self.client.producer(
            ProducerConfig(
                linger_ms=self.entropy.below(30),
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                delivery_timeout_ms=NEVER_EXPIRES_MS,
                max_in_flight_requests_per_connection=1 + self.entropy.below(5),
            )
        )

    def ended(self) -> None:
        self._in_flight = 0
        self._next = None

    @property
    def settled(self) -> bool:
        return not self._in_flight

    def work(self) -> None:
        if self.stopped or self._in_flight >= IN_FLIGHT_MAX:
            return
        history = self.context.history
        if self._next is None:
            self._count += 1
            value = f"{self.name} {self._count}".encode()
            self._next = value, self.context.places[self.entropy.below(len(self.context.places))]
        value, place = self._next
        history.send(value, place)
        accepted = self._producer.send(
            place.topic, value, partition=place.partition, ended=partial(self._delivered, self.machine.boots, value)
        )
        if not accepted:
            history.withdraw(value)
            return
        self._next = None
        self._in_flight += 1
        self.rest(PAUSE_MS_MAX)

    def _delivered(self, boot: int, value: bytes, outcome: Any) -> None:
        assert boot == self.machine.boots, "a killed process gets no results"
        self._in_flight -= 1
        if isinstance(outcome, Exception):
            raise Violation(NEVER_REFUSED, f"{value!r}: {outcome}")
        self.context.history.acknowledge(value, outcome.offset)
        self.progress += 1

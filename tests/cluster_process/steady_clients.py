"""Clients that write one record after another to one partition and keep the errors that reach the application."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count

from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Message
from confluent_kafka import Producer as LibrdkafkaProducer

from headrace import Producer
from tests.cluster_process.replicated_load import QUIET, values_of
from tests.process_groups import wait_until

PAUSE_S = 0.005
WAIT_S_MAX = 120.0

Send = Callable[[bytes], None]
"""Sends a record and waits until it is acknowledged."""


class SteadyClient:
    """Runs in a thread of its own; every client is idempotent, so that each record is found once."""

    name = ""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        self.acknowledged = 0
        self.errors: list[str] = []
        self.bootstrap = bootstrap
        self.topic = topic
        self.partition = partition
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def sending(self, turn: Callable[[Send], None]) -> None:
        """Call `turn` with the function that sends."""
        raise NotImplementedError

    def _run(self) -> None:
        try:
            self.sending(self._send_all)
        except Exception as error:
            self.errors.append(f"{self.name}: {error!r}")

    def _send_all(self, send: Send) -> None:
        for number in count():
            if self._stop.is_set():
                return
            send(b"%d" % number)
            self.acknowledged += 1
            time.sleep(PAUSE_S)

    @contextmanager
    def running(self) -> Iterator["SteadyClient"]:
        self._thread.start()
        try:
            self.wait_for_more()
            yield self
        finally:
            self._stop.set()
            self._thread.join(WAIT_S_MAX)

    def wait_for_more(self) -> None:
        target = self.acknowledged + 20
        wait_until(lambda: self.errors or self.acknowledged >= target, f"{self.name} does not continue", WAIT_S_MAX)
        assert self.errors == []

    def check(self) -> None:
        assert self.errors == []
        found = [int(value) for value in values_of(self.bootstrap, self.topic, self.partition)]
        assert found == list(range(self.acknowledged)), f"{self.name} has lost or doubled a record"


class Librdkafka(SteadyClient):
    name = "librdkafka"

    def sending(self, turn: Callable[[Send], None]) -> None:
        producer = LibrdkafkaProducer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, **QUIET})
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failed.append(error)

        def send(value: bytes) -> None:
            producer.produce(self.topic, value, partition=self.partition, on_delivery=delivered)
            assert producer.flush(WAIT_S_MAX) == 0
            assert failed == []

        turn(send)


class Aiokafka(SteadyClient):
    name = "aiokafka"

    def sending(self, turn: Callable[[Send], None]) -> None:
        with asyncio.Runner() as runner:
            producer = runner.run(self._started())

            async def send(value: bytes) -> None:
                await producer.send_and_wait(self.topic, value, partition=self.partition)

            try:
                turn(lambda value: runner.run(send(value)))
            finally:
                runner.run(producer.stop())

    async def _started(self) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, enable_idempotence=True)
        await producer.start()
        return producer


class OwnClient(SteadyClient):
    name = "headrace"

    def sending(self, turn: Callable[[Send], None]) -> None:
        with Producer(self.bootstrap) as producer:
            turn(lambda value: self._send(producer, value))

    def _send(self, producer: Producer, value: bytes) -> None:
        producer.send(self.topic, value, partition=self.partition).result(timeout_ms=WAIT_S_MAX * 1_000)


CLIENTS: Sequence[type[SteadyClient]] = (Librdkafka, Aiokafka, OwnClient)


@contextmanager
def steady_clients(bootstrap: str, topic: str) -> Iterator[list[SteadyClient]]:
    """Run one client of each kind, each with a partition of its own, and check at the end what they wrote."""
    clients = [kind(bootstrap, topic, partition) for partition, kind in enumerate(CLIENTS)]
    with ExitStack() as stack:
        for client in clients:
            stack.enter_context(client.running())
        yield clients
    for client in clients:
        client.check()

"""The front for another program's loop behind the calls of the blocking one, as far as it has the same operations."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from headrace.client.config import ClientConfig, ConsumerConfig, ProducerConfig, resolve_config
from headrace.client.errors import ClientError, DeadlineExceeded
from headrace.client.loop import LoopClient
from headrace.client.types import ConsumerRecord, GroupIdentity
from headrace.ports.real.clock import RealClock
from headrace.ports.real.entropy import RealEntropy
from headrace.ports.real.network import RealNetwork

CALL_MS_MAX = 60_000
TURN_MS = 20
ITERATION_MS = 1_000


class Loop:
    """A loop that has one client and does nothing else."""

    def __init__(self, config: ClientConfig) -> None:
        self._clock, self._network = RealClock(), RealNetwork()
        self.client = LoopClient(config, network=self._network, clock=self._clock, entropy=RealEntropy())

    def until(self, is_so: Callable[[], bool], timeout_ms: float = CALL_MS_MAX) -> bool:
        give_up_ms = self._clock.monotonic_ms() + timeout_ms
        while not is_so():
            left_ms = give_up_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                return False
            self.client.turn(min(left_ms, TURN_MS))
        return True

    def call(self, begin: Callable[..., None], *arguments: Any, **options: Any) -> Any:
        """Its result, or the error raised."""
        ended: list[Any] = []
        begin(*arguments, **options, ended=ended.append)
        assert self.until(lambda: bool(ended)), "it never ends"
        if isinstance(ended[0], Exception):
            raise ended[0]
        return ended[0]

    def close(self) -> None:
        self.client.close()
        self._network.close()


class Delivery:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.outcomes: list[Any] = []

    def done(self) -> bool:
        return bool(self.outcomes)

    def result(self, timeout_ms: float = CALL_MS_MAX) -> Any:
        if not self._loop.until(self.done, timeout_ms):
            raise DeadlineExceeded("the record is not delivered yet")
        if isinstance(self.outcomes[0], ClientError):
            raise self.outcomes[0]
        return self.outcomes[0]


class LoopedProducer:
    def __init__(self, bootstrap_servers: str | None = None, **options: Any) -> None:
        config = resolve_config(ProducerConfig, None, bootstrap_servers, options)
        self._loop = Loop(config)
        self._producer = self._loop.client.producer(config)

    def send(self, topic: str, value: bytes | None, key: bytes | None = None, **record: Any) -> Delivery:
        delivery = Delivery(self._loop)
        taken = self._loop.until(
            lambda: self._producer.send(topic, value, key, **record, ended=delivery.outcomes.append)
        )
        assert taken, "there is never room for it"
        return delivery

    def flush(self, timeout_ms: float = CALL_MS_MAX) -> None:
        assert self._loop.until(lambda: not self._producer.incomplete_count(), timeout_ms)
        self._loop.client.turn()  # Callbacks are called from there.

    def transaction(self) -> "Transaction":
        self._loop.call(self._producer.begin_transaction)
        return Transaction(self._loop, self._producer)

    def close(self) -> None:
        self.flush()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class Transaction:
    def __init__(self, loop: Loop, producer: Any) -> None:
        self._loop = loop
        self._producer = producer

    def commit_offsets(self, offsets: Mapping[Any, Any], group: GroupIdentity | str) -> None:
        identity = GroupIdentity(group) if isinstance(group, str) else group
        self._loop.call(self._producer.add_transaction_offsets, offsets, identity)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_exception: object) -> None:
        self._loop.call(self._producer.end_transaction, commit=kind is None)


class LoopedConsumer:
    def __init__(self, *topics: str, bootstrap_servers: str | None = None, **options: Any) -> None:
        self.config: ConsumerConfig = resolve_config(ConsumerConfig, None, bootstrap_servers, options)
        self._loop = Loop(self.config)
        self._consumer = self._loop.client.consumer(self.config)
        self._left: list[ConsumerRecord] = []
        if topics:
            self._consumer.subscribe(*topics)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def poll(self, timeout_ms: float = ITERATION_MS, max_records: int | None = None) -> list[ConsumerRecord]:
        taken: list[ConsumerRecord] = []

        def take() -> bool:
            taken.extend(self._consumer.take(max_records or self.config.max_poll_records))
            return bool(taken)

        self._loop.until(take, timeout_ms)
        return taken

    def position(self, partition: Any) -> int:
        assert self._loop.until(lambda: self._consumer.position(partition) is not None)
        found = self._consumer.position(partition)
        assert found is not None
        return found

    def commit(self, offsets: Any = None) -> None:
        self._loop.call(self._consumer.commit, offsets)

    def close(self) -> None:
        if self.config.group_id is not None:
            if self.config.enable_auto_commit:
                self.commit()
            self._loop.call(self._consumer.leave)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return self

    def __next__(self) -> ConsumerRecord:
        while not self._left:
            self._left = self.poll()[::-1]
        return self._left.pop()


class LoopFront:
    name = "loop"
    Consumer, Producer = LoopedConsumer, LoopedProducer

    def close(self) -> None:
        """Every client has a loop of its own."""

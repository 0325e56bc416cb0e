"""The front for a foreign loop, such as the broker's or the simulator's: nothing waits, results go to callbacks.

All input comes through the ports. The owner of the loop calls `step` and `handle` (or `turn`, if the network is the
client's own); producers and consumers of one client share its connections.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from headrace.client.consumer_base import (
    ChangeCallback,
    Commits,
    ConsumerBase,
    ConsumerParts,
    Place,
    RebalanceListener,
    as_offsets,
    as_partitions,
    as_place,
    check_offset,
)
from headrace.client.core.calls import Call, Operation, Pause
from headrace.client.core.cluster import Cluster
from headrace.client.core.engine import ClientEngine
from headrace.client.core.groups.group import GroupCore
from headrace.client.core.groups.membership import NoticeKind
from headrace.client.core.produced_batches import ProducedBatch
from headrace.client.delivery_base import delivered
from headrace.client.errors import BufferFull, ClientClosed, TransactionFailed
from headrace.client.link_factory import make_links
from headrace.client.producer_base import ProducerBase, make_core
from headrace.client.types import ConsumerRecord, GroupIdentity, OffsetAndMetadata
from headrace.model.ids import TopicPartition
from headrace.ports.clock import Clock
from headrace.ports.entropy import Entropy
from headrace.ports.network import Network

SETTLED_LOOK_MS = 2
"""Interval at which the end of a transaction checks whether all its records are delivered."""

Ended = Callable[[Any], None]
"""Gets the result, or the exception."""


class LoopClient:
    def __init__(self, config: ClientConfig, *, network: Network, clock: Clock, entropy: Entropy) -> None:
        self.cluster = Cluster(age_ms_max=config.metadata_max_age_ms)
        self._network = network
        self._clock = clock
        self._entropy = entropy
        self._links = make_links(config, self.cluster, network=network, clock=clock, entropy=entropy)
        self._engine = ClientEngine(self._links, clock)
        self._consumers: list[LoopConsumer] = []

    def run(self, operation: Operation[Any], *, timeout_ms: float, ended: Ended) -> None:
        """Begin an operation, such as those of `headrace.client.core.admin`."""
        self._engine.start(operation, deadline_ms=self._clock.monotonic_ms() + timeout_ms, ended=ended)

    def producer(self, config: ProducerConfig) -> "LoopProducer":
        producer = LoopProducer(config, self, self._clock, self._entropy)
        self._engine.attach(producer)
        return producer

    def consumer(self, config: ConsumerConfig) -> "LoopConsumer":
        consumer = LoopConsumer(config, self, self._clock, self._entropy)
        self._consumers.append(consumer)
        self._engine.attach(consumer)
        return consumer

    def step(self) -> float:
        """Send what is due; return when to call again, unless something happens before."""
        wakeup_ms = self._engine.step()
        now_ms = self._clock.monotonic_ms()
        return now_ms + self._links.wait_ms(wakeup_ms - now_ms)

    def handle(self, events: Iterable[tuple[int, int]]) -> None:
        """Handle events of the loop's network; tokens of other owners are ignored."""
        self._links.handle(events)

    def turn(self, timeout_ms: float = 0.0) -> None:
        """Run one turn of a loop that has nothing else on this network."""
        wait_ms = self.step() - self._clock.monotonic_ms()
        self.handle(self._network.poll(max(0.0, wait_ms if timeout_ms < 0 else min(wait_ms, timeout_ms))))

    def close(self) -> None:
        """Close the connections of all its producers and consumers; operations end with an error."""
        self._engine.stop(ClientClosed("the client was closed before the response arrived"))
        for consumer in self._consumers:
            self._links.send_last(consumer.closing_calls())
        self._links.close()


class LoopProducer(ProducerBase):
    """With a `transactional_id` it sends between `begin_transaction` and `end_transaction`."""

    def __init__(self, config: ProducerConfig, client: LoopClient, clock: Clock, entropy: Entropy) -> None:
        self.config = config
        self._client = client
        self._clock = clock
        self._core, self._transactions = make_core(config, client.cluster, entropy)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp: int | None = None,
        *,
        ended: Ended | None = None,
    ) -> bool:
        """Add a record; False if the buffer is full or the topic is not known yet: try again in a later turn."""
        if self._transactions is not None:
            self._transactions.check_may_send()
        when = self._clock.wall_ms() if timestamp is None else timestamp
        try:
            appended = self._core.append(topic, partition, when, key, value, headers, self._clock.monotonic_ms())
        except BufferFull:
            return False
        if appended is None:
            return False
        if ended is not None:
            batch, place = appended.batch, appended.place
            if batch.callbacks is None:
                batch.callbacks = []
            batch.callbacks.append(lambda: ended(_outcome(batch, place, when)))
        return True

    def begin_transaction(self, *, ended: Ended) -> None:
        """Begin a transaction; records sent after it has begun belong to it."""
        transactions = self._require_transactions()

        def begin() -> Operation[None]:
            if transactions.is_new:
                yield from transactions.initialize()
            transactions.begin()

        self._run(begin(), ended)

    def add_transaction_offsets(self, offsets: Commits, group: GroupIdentity, *, ended: Ended) -> None:
        """Commit these offsets of a group with the transaction."""
        self._run(self._require_transactions().add_offsets(as_offsets(offsets), group), ended)

    def end_transaction(self, *, commit: bool, ended: Ended) -> None:
        """Commit the transaction once all its records are delivered, or abort it; send nothing until this has ended."""
        transactions = self._require_transactions()

        def end() -> Operation[None]:
            if commit:
                transactions.check_may_commit()
            else:
                self._core.drop_waiting(TransactionFailed("the transaction of this record was aborted"))
            self._core.fill()
            while self._core.incomplete_count():
                yield Pause(SETTLED_LOOK_MS)
            transactions.seal()
            yield from transactions.end(commit=commit)

        self._run(end(), ended)

    def _run(self, operation: Operation[None], ended: Ended) -> None:
        self._client.run(operation, timeout_ms=self.config.max_block_ms, ended=ended)

    def incomplete_count(self) -> int:
        """Return the batches that are neither delivered nor failed."""
        return self._core.incomplete_count()

    def poll(self, now_ms: float) -> tuple[list[Any], float]:
        """Return the core's calls to the engine and notify the waiters of completed batches."""
        calls, wakeup_ms = self._core.poll(now_ms)
        settled, self._core.settled = self._core.settled, []
        for batch in settled:
            for callback in batch.callbacks or ():
                callback()
        return calls, wakeup_ms


def _outcome(batch: ProducedBatch, place: int, timestamp: int) -> Any:
    return batch.error if batch.error is not None else delivered(batch, place, timestamp)


class LoopConsumer(ConsumerBase):
    """`take` in every turn counts as the application's poll; it also announces changes of the assignment."""

    def __init__(self, config: ConsumerConfig, client: LoopClient, clock: Clock, entropy: Entropy) -> None:
        self.config = config
        self._client = client
        self._clock = clock
        self._parts = ConsumerParts(config, client.cluster, entropy)
        self._core, self._group = self._parts.core, self._parts.group
        self._listener = RebalanceListener()
        self._is_committing = False

    def subscribe(
        self,
        *topics: str,
        on_assigned: ChangeCallback | None = None,
        on_revoked: ChangeCallback | None = None,
        on_lost: ChangeCallback | None = None,
    ) -> None:
        self._listener = RebalanceListener(on_assigned, on_revoked, on_lost)
        self._parts.subscribe(topics, None)

    def assign(self, partitions: Iterable[Place]) -> None:
        self._parts.assign(as_partitions(partitions))

    def seek(self, partition: Place, offset: int) -> None:
        check_offset(offset)
        self._core.seek(as_place(partition), offset)

    def position(self, partition: Place) -> int | None:
        return self._core.position(as_place(partition))

    def take(self, records_max: int) -> list[ConsumerRecord]:
        """Return records that have arrived; raises errors."""
        if self._group is not None:
            self._group.polled(self._clock.monotonic_ms())
            self._announce_changes(self._group)
        return self._core.take(records_max)

    def commit(self, offsets: Commits, *, ended: Ended, timeout_ms: float | None = None) -> None:
        """Commit these offsets, or those of all records taken."""
        group = self._require_group()
        wanted = as_offsets(offsets) if offsets is not None else group.uncommitted()
        self._client.run(group.commit(wanted), timeout_ms=timeout_ms or self.config.request_timeout_ms, ended=ended)

    def leave(self, *, ended: Ended) -> None:
        """Leave the group; nothing can be taken afterwards."""
        self._client.run(self._require_group().leave(), timeout_ms=self.config.request_timeout_ms, ended=ended)

    def closing_calls(self) -> list[Call]:
        """Return the last requests to brokers, for closing the client."""
        return self._core.closing_calls()

    def poll(self, now_ms: float) -> tuple[list[Any], float]:
        """Return the calls of the group, or of the core alone, to the engine."""
        return (self._group or self._core).poll(now_ms)

    def _announce_changes(self, group: GroupCore) -> None:
        """Announce changes. Offsets of partitions to be revoked are committed first, which may take some turns."""
        while not self._is_committing and (notice := group.notice()) is not None:
            if notice.kind == NoticeKind.REVOKED and self.config.enable_auto_commit:
                held = {p: each for p, each in group.uncommitted().items() if p in notice.partitions}
                if held:
                    self._commit_first(group, held)
                    return
            group.begin(notice)
            callback = self._listener.callback(notice.kind)
            if callback is not None:
                callback(notice.partitions)
            group.finish(notice, self._clock.monotonic_ms())

    def _commit_first(self, group: GroupCore, held: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self._is_committing = True

        def ended(outcome: Any) -> None:
            self._is_committing = False
            if isinstance(outcome, Exception):
                group.give_up_commit(held)

        self._client.run(group.commit(held), timeout_ms=self.config.session_timeout_ms / 2, ended=ended)

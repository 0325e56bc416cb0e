"""An internal topic and the coordinators on its partitions: creates the topic and finds the coordinator of a key."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Generic

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.host import CoordinatorHost, Decide, MachineT, RecordT, Runtime
from headrace.broker.partitions.replica import Replica
from headrace.broker.services import CoordinatorServices
from headrace.core.controller.commands import CreatableTopic
from headrace.core.controller.partition_states import PartitionState
from headrace.core.coordination.machine import RecordFormat
from headrace.model.errors import ErrorCode

_INT32_MAX = 2**31 - 1

HASHES_KEPT_MAX = 10_000
"""Keys whose hash is cached: requests name the same groups and transactional ids again and again."""


class CoordinatedTopic(Generic[MachineT, RecordT]):
    def __init__(
        self,
        name: str,
        services: CoordinatorServices,
        *,
        new_machine: Callable[[], MachineT],
        record_format: RecordFormat[RecordT],
        new_topic: Callable[[], CreatableTopic],
        runtime: Runtime,
        commit_wait_ms_max: int,
        on_loaded: Callable[[MachineT], None] = lambda machine: None,
    ) -> None:
        self.name = name
        self._services = services
        self._new_machine = new_machine
        self._format = record_format
        self._new_topic = new_topic
        self._runtime = runtime
        self._commit_wait_ms_max = commit_wait_ms_max
        self._on_loaded = on_loaded
        self._hosts: dict[int, CoordinatorHost[MachineT, RecordT]] = {}
        self._await_creation: list[Callable[[], None]] = []

    # The topic

    def exists(self) -> bool:
        return self.name in self._services.image.topics

    def open_here(self) -> bool:
        """Return whether every partition that this broker leads has a coordinator; before that it refuses requests."""
        topic = self._services.image.topics.get(self.name)
        if topic is None:
            return False
        hosts = map(self._hosts.get, topic.partitions.led_by(self._services.node_id))
        return all(host is not None and not host.lost for host in hosts)

    def when_created(self, then: Callable[[], None]) -> None:
        """Create the topic if it does not exist; call `then` when its partitions can be used or the creation failed."""
        if self.exists():
            self._services.partitions.when_ready(then)
            return
        self._await_creation.append(then)
        if len(self._await_creation) == 1:
            self._services.create_topics([self._new_topic()], self._created)

    def _created(self) -> None:
        waiting, self._await_creation = self._await_creation, []
        for then in waiting:
            then()

    # Keys

    def partition_of(self, key: str) -> int | None:
        """Return the partition of a key, by the same hash as Kafka; None if the topic does not exist."""
        topic = self._services.image.topics.get(self.name)
        return None if topic is None else partition_for(key, len(topic.partitions))

    def state_of(self, key: str) -> PartitionState | None:
        partition = self.partition_of(key)
        return None if partition is None else self._services.image.partition(self.name, partition)

    def propose(self, key: str, decide: Decide[MachineT, RecordT]) -> Proposal[Any]:
        """Let the coordinator of the key decide; fails with NOT_COORDINATOR if it is not on this node."""
        host = self.host_of(key)
        if host is None:
            return failed(ErrorCode.NOT_COORDINATOR, "this broker is not the coordinator")
        return host.propose(decide)

    def host_of(self, key: str) -> CoordinatorHost[MachineT, RecordT] | None:
        """Return the host of the key's coordinator; None if this node is not the coordinator."""
        partition = self.partition_of(key)
        host = None if partition is None else self._hosts.get(partition)
        return None if host is None or host.lost else host

    # Coordinators

    def __iter__(self) -> Iterator[CoordinatorHost[MachineT, RecordT]]:
        """Iterate over the hosts of partitions that this node leads, in the order of partition numbers."""
        for _, host in sorted(self._hosts.items()):
            if not host.lost:
                yield host

    def partition_led(self, partition: Replica) -> None:
        if partition.topic == self.name and partition.serves:
            self._hosts[partition.index] = CoordinatorHost(
                partition,
                new_machine=self._new_machine,
                record_format=self._format,
                runtime=self._runtime,
                commit_wait_ms_max=self._commit_wait_ms_max,
                on_loaded=self._on_loaded,
            )

    def begin_stop(self) -> None:
        for host in self:
            host.begin_stop()


def failed(code: ErrorCode, message: str) -> Proposal[Any]:
    proposal: Proposal[Any] = Proposal()
    proposal.complete(ProposalFailed(code, message))
    return proposal


@lru_cache(maxsize=HASHES_KEPT_MAX)
def java_hash(text: str) -> int:
    """Return Java's hash of a string, which Kafka uses to find partitions: over UTF-16 units, in 32 signed bits."""
    encoded = text.encode("utf-16-le", errors="surrogatepass")
    value = 0
    for low, high in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def partition_for(key: str, partition_count: int) -> int:
    number = abs(java_hash(key))
    return (0 if number > _INT32_MAX else number) % partition_count

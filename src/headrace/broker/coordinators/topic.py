"""One internal topic and the machines on its partitions: which key belongs to which, and the topic's creation."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Generic

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.host import CoordinatorHost, Decide, MachineT, RecordT, Runtime
from headrace.broker.partitions.leader import LedPartition
from headrace.broker.services import CoordinatorServices
from headrace.core.controller.commands import NewTopic
from headrace.core.controller.image import PartitionState
from headrace.core.coordination.machine import RecordFormat
from headrace.model.errors import ErrorCode

_INT32_MAX = 2**31 - 1

HASHES_KEPT_MAX = 10_000
"""Keys whose hash is remembered: the same groups and transactional ids ask again and again."""


class CoordinatedTopic(Generic[MachineT, RecordT]):
    def __init__(
        self,
        name: str,
        services: CoordinatorServices,
        *,
        new_machine: Callable[[], MachineT],
        record_format: RecordFormat[RecordT],
        new_topic: Callable[[], NewTopic],
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
        """Whether every partition has its machine: one that is named before is asked before it can answer."""
        topic = self._services.image.topics.get(self.name)
        return topic is not None and sum(not host.lost for host in self._hosts.values()) == len(topic.partitions)

    def when_created(self, then: Callable[[], None]) -> None:
        """Create the topic unless it is there; go on when its partitions can be used, or could not be made."""
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
        """The number of the partition that a key belongs to, by the hash that every Kafka uses."""
        topic = self._services.image.topics.get(self.name)
        return None if topic is None else partition_for(key, len(topic.partitions))

    def state_of(self, key: str) -> PartitionState | None:
        partition = self.partition_of(key)
        return None if partition is None else self._services.image.partition(self.name, partition)

    def propose(self, key: str, decide: Decide[MachineT, RecordT]) -> Proposal[Any]:
        """Ask the machine that the key belongs to; fails where this node is not its coordinator."""
        host = self.host_of(key)
        if host is None:
            return failed(ErrorCode.NOT_COORDINATOR, "this node does not coordinate it")
        return host.propose(decide)

    def host_of(self, key: str) -> CoordinatorHost[MachineT, RecordT] | None:
        """None where this node is not the coordinator."""
        partition = self.partition_of(key)
        host = None if partition is None else self._hosts.get(partition)
        return None if host is None or host.lost else host

    # Machines

    def __iter__(self) -> Iterator[CoordinatorHost[MachineT, RecordT]]:
        """Those whose partition is led here, in the order of partition numbers."""
        for _, host in sorted(self._hosts.items()):
            if not host.lost:
                yield host

    def partition_led(self, partition: LedPartition) -> None:
        if partition.topic == self.name and not partition.offline:
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
    """The hash of a string that Kafka finds partitions by: over its UTF-16 units, in 32 bits, with a sign."""
    encoded = text.encode("utf-16-le", errors="surrogatepass")
    value = 0
    for low, high in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def partition_for(key: str, partition_count: int) -> int:
    number = abs(java_hash(key))
    return (0 if number > _INT32_MAX else number) % partition_count

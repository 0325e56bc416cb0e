"""The partitions of a request that commits offsets: whom its group is asked about, and its word put back into place."""

from collections.abc import Sequence
from typing import Protocol

from headrace.broker.api.context import RequestContext
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import OffsetToCommit
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode


class AskedPartition(Protocol):
    @property
    def partition_index(self) -> int: ...

    @property
    def committed_offset(self) -> int: ...

    @property
    def committed_leader_epoch(self) -> int: ...

    @property
    def committed_metadata(self) -> str | None: ...


class OffsetPlaces:
    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self.offsets: list[OffsetToCommit] = []
        """Those that the group is asked about."""
        self._topics: list[list[tuple[int, ErrorCode | None]]] = []
        """Partitions, each refused already, or the next one of `offsets`."""

    def add_topic(self, name: str | None, partitions: Sequence[AskedPartition]) -> None:
        """None for a name if the request gives the id of no topic."""
        places: list[tuple[int, ErrorCode | None]] = []
        count = self._partition_count(name)
        for asked in partitions:
            partition = asked.partition_index
            error = count if isinstance(count, ErrorCode) else None
            if error is None and not isinstance(count, ErrorCode) and not 0 <= partition < count:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if error is None:
                assert name is not None
                metadata = asked.committed_metadata or ""
                self.offsets.append(
                    OffsetToCommit(name, partition, asked.committed_offset, asked.committed_leader_epoch, metadata)
                )
            places.append((partition, error))
        self._topics.append(places)

    def _partition_count(self, name: str | None) -> int | ErrorCode:
        if name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not self._ctx.authorized(Operation.READ, ResourceType.TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found = self._ctx.image.topics.get(name)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else len(found.partitions)

    def errors(self, outcome: list[ErrorCode] | ProposalFailed) -> list[list[tuple[int, ErrorCode]]]:
        """For each topic its partitions and what became of them."""
        decided = iter([outcome.code] * len(self.offsets) if isinstance(outcome, ProposalFailed) else outcome)
        return [
            [(partition, next(decided) if error is None else error) for partition, error in places]
            for places in self._topics
        ]

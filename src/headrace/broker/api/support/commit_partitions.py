"""The partitions of an OffsetCommit or TxnOffsetCommit request: checks them, and merges the coordinator's errors."""

from collections.abc import Sequence
from typing import Protocol

from headrace.broker.api.context import RequestContext
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import OffsetToCommit
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode


class CommitRequestPartition(Protocol):
    @property
    def partition_index(self) -> int: ...

    @property
    def committed_offset(self) -> int: ...

    @property
    def committed_leader_epoch(self) -> int: ...

    @property
    def committed_metadata(self) -> str | None: ...


class CommitPartitions:
    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self.offsets: list[OffsetToCommit] = []
        """The offsets that the handler passes to the coordinator."""
        self._topics: list[list[tuple[int, ErrorCode | None]]] = []
        """For each topic its partitions, each with the handler's error, or None for the next one of `offsets`."""

    def add_topic(self, name: str | None, partitions: Sequence[CommitRequestPartition]) -> None:
        """Add a topic of the request; its name is None if no topic has the id in the request."""
        checked: list[tuple[int, ErrorCode | None]] = []
        count = self._partition_count(name)
        for requested in partitions:
            partition = requested.partition_index
            error = count if isinstance(count, ErrorCode) else None
            if error is None and not isinstance(count, ErrorCode) and not 0 <= partition < count:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if error is None:
                assert name is not None
                metadata = requested.committed_metadata or ""
                self.offsets.append(
                    OffsetToCommit(
                        name, partition, requested.committed_offset, requested.committed_leader_epoch, metadata
                    )
                )
            checked.append((partition, error))
        self._topics.append(checked)

    def refuse(self, error: ErrorCode) -> None:
        """Give every partition the error of the group or the transactional id, which comes before its own."""
        self.offsets.clear()
        self._topics = [[(partition, error) for partition, _ in checked] for checked in self._topics]

    def _partition_count(self, name: str | None) -> int | ErrorCode:
        if name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not self._ctx.authorized(Operation.READ, AclResourceType.TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found = self._ctx.image.topics.get(name)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else len(found.partitions)

    def errors(self, outcome: list[ErrorCode] | ProposalFailed) -> list[list[tuple[int, ErrorCode]]]:
        """Return the partitions of each topic with their errors, the handler's or the coordinator's."""
        decided = iter([outcome.code] * len(self.offsets) if isinstance(outcome, ProposalFailed) else outcome)
        return [
            [(partition, next(decided) if error is None else error) for partition, error in checked]
            for checked in self._topics
        ]

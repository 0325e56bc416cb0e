"""Syncs partitions that this broker leads up to their current end, for a batch commit."""

from collections.abc import Callable, Collection
from functools import partial

from headrace.broker.services import PartitionAdmin
from headrace.model.errors import ErrorCode

Partition = tuple[str, int]
"""(topic, partition)."""

Errors = dict[Partition, ErrorCode]


def sync_partitions(partitions: PartitionAdmin, wanted: Collection[Partition], then: Callable[[Errors], None]) -> None:
    """Call `then` with an error code for each partition: NONE if it is synced up to its end of now.

    It is called at once if there is nothing to wait for. All waits for one partition in a turn share one flush.
    """
    errors: Errors = {}

    def ended(partition: Partition, ok: bool) -> None:
        errors[partition] = ErrorCode.NONE if ok else ErrorCode.KAFKA_STORAGE_ERROR
        if len(errors) == len(wanted):
            then(errors)

    waits = []
    for topic, index in wanted:
        replica = partitions.partition_of(partitions.by_name.get(topic.encode()), index)
        if isinstance(replica, ErrorCode):
            errors[topic, index] = replica
        elif replica.log.synced_offset >= replica.log.staged_end_offset:
            errors[topic, index] = ErrorCode.NONE
        else:
            waits.append((replica, partial(ended, (topic, index))))
    if not waits:
        then(errors)
    for replica, call in waits:
        partitions.syncs.when_synced(replica, replica.log.staged_end_offset, call)

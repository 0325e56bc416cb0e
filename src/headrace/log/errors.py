"""Errors of the log, each with the party at fault."""

from errno import EDQUOT, EMFILE, ENFILE, ENOMEM, ENOSPC

from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition

_NO_ROOM = frozenset({ENOSPC, EDQUOT})
_NO_MEANS = frozenset({EMFILE, ENFILE, ENOMEM})


def is_full(error: BaseException | None) -> bool:
    """Return whether the device, the quota or the inode table is full; space may become free later."""
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def is_transient(error: BaseException | None) -> bool:
    """Return whether the error is transient: out of space or file descriptors. The device is sound and a retry may
    succeed.
    """
    return isinstance(error, OSError) and (error.errno in _NO_ROOM or error.errno in _NO_MEANS)


class LogError(Exception):
    """A request or a folder that this log cannot serve."""


class OffsetOutsideLog(LogError):
    """The reader requested an offset below the log start offset or above the log end offset."""

    def __init__(self, offset: int, start_offset: int, end_offset: int) -> None:
        super().__init__(f"offset {offset} is outside the log, which holds {start_offset} to {end_offset}")
        self.offset = offset
        self.start_offset = start_offset
        self.end_offset = end_offset


class SequenceRejected(LogError):
    """The producer's epoch is old or its sequence is not the next one."""

    def __init__(self, error: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.error = error


class WrongTopicId(LogError):
    """The folder belongs to an earlier topic of the same name; it is never adopted."""

    def __init__(self, path: str, topic_partition: TopicPartition, found: bytes) -> None:
        super().__init__(f"{path} does not belong to topic {topic_partition.topic}: its topic id is {found.hex()}")
        self.path = path
        self.found = found


class WrongDirectory(LogError):
    """The log directory belongs to another node or cluster, or its meta.properties cannot be read."""


class CorruptFile(LogError):
    """A checkpoint, index or snapshot is inconsistent; it can be rebuilt from the segments."""


class DamagedLog(LogError):
    """A segment is damaged below the recovery point, where a crash cannot be the cause. The broker does not truncate
    it.
    """

    def __init__(self, path: str, position: int, damage: str) -> None:
        super().__init__(
            f"{path} is damaged at position {position}, below its recovery point ({damage}); restore the "
            "folder from a copy, or truncate it there with `headrace log repair`"
        )
        self.path = path
        self.position = position
        self.damage = damage


class MissingLog(LogError):
    """A folder that held records is gone; the broker does not replace it with an empty one."""

    def __init__(self, path: str, end_offset: int) -> None:
        super().__init__(
            f"{path} is missing, although it held records up to offset {end_offset} at least; "
            "restore the folder from a copy, or delete the topic"
        )


class RefusedBatch(LogError):
    """A batch from the leader that this replica does not store; everything before it is stored.

    `offset` is where the replica ends now, and so the next offset to fetch.
    """

    def __init__(self, topic_partition: TopicPartition, offset: int, reason: str, advice: str) -> None:
        super().__init__(
            f"{topic_partition} refuses the leader's batch at its end, offset {offset}: {reason}; {advice}"
        )
        self.topic_partition = topic_partition
        self.offset = offset
        self.reason = reason


class DamagedBatch(RefusedBatch):
    """The bytes of the batch are not what its producer sent: the leader's copy, or the way from it, is damaged."""

    def __init__(self, topic_partition: TopicPartition, offset: int, reason: str) -> None:
        advice = "it is fetched again; if this continues, look at the leader's log with `headrace log verify`"
        super().__init__(topic_partition, offset, reason, advice)


class ReplicaDiverged(RefusedBatch):
    """The batch is intact, but does not follow the replica's last one: the two logs have different histories.

    `found` is the base offset of the batch. An empty replica may restart there.
    """

    def __init__(self, topic_partition: TopicPartition, offset: int, found: int, reason: str) -> None:
        advice = "the replica has to compare leader epochs with the leader and truncate its log before it continues"
        super().__init__(topic_partition, offset, reason, advice)
        self.found = found

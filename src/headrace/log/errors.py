"""What the log says no to, and whose fault it is."""

from errno import EDQUOT, EMFILE, ENFILE, ENOMEM, ENOSPC

from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition

_NO_ROOM = frozenset({ENOSPC, EDQUOT})
_NO_MEANS = frozenset({EMFILE, ENFILE, ENOMEM})


def is_full(error: BaseException | None) -> bool:
    """The device, the quota or the table of inodes has no room; it may have some later."""
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def passes(error: BaseException | None) -> bool:
    """Nobody's fault: no room, or no file descriptors left. The same call may succeed later, the device is sound."""
    return isinstance(error, OSError) and (error.errno in _NO_ROOM or error.errno in _NO_MEANS)


class LogError(Exception):
    """A request or a folder that this log cannot serve."""


class OffsetOutOfRange(LogError):
    """The reader's fault: it asked below the log's start or above its end."""

    def __init__(self, offset: int, start_offset: int, end_offset: int) -> None:
        super().__init__(f"offset {offset} is outside {start_offset} to {end_offset}")
        self.offset = offset
        self.start_offset = start_offset
        self.end_offset = end_offset


class SequenceRejected(LogError):
    """The producer's fault: its epoch is old or its sequence does not follow."""

    def __init__(self, error: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.error = error


class WrongTopicId(LogError):
    """A folder of an earlier topic of the same name, which is never adopted."""

    def __init__(self, path: str, topic_partition: TopicPartition, found: bytes) -> None:
        super().__init__(f"{path} belongs to another topic than {topic_partition.topic}: its id is {found.hex()}")
        self.path = path
        self.found = found


class WrongDirectory(LogError):
    """A log directory of another node or cluster, or one whose meta.properties cannot be read."""


class CorruptFile(LogError):
    """A checkpoint, index or snapshot that contradicts itself; what it says can be rebuilt from the segments."""


class DamagedLog(LogError):
    """A segment is damaged where a crash cannot have damaged it: below what was synced. Nothing is cut by itself."""

    def __init__(self, path: str, position: int, damage: str) -> None:
        super().__init__(
            f"{path} is damaged at position {position}, below its recovery point ({damage}); "
            "restore the folder from a copy, or cut it there with `headrace log repair`"
        )
        self.path = path
        self.position = position
        self.damage = damage


class MissingLog(LogError):
    """A folder is gone that held records; it is not made anew, as if it had never been."""

    def __init__(self, path: str, end_offset: int) -> None:
        super().__init__(
            f"{path} is gone, and held records up to offset {end_offset} at least; restore the folder from a copy, "
            "or delete the topic"
        )

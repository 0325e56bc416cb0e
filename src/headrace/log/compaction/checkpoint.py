"""Read and write `cleaner-offset-checkpoint`, the offset up to which each log of a directory is clean, in Kafka's
format.
"""

from collections.abc import Callable, Mapping

from headrace.model.ids import TopicPartition
from headrace.ports.disk import Disk

from .. import checkpoints, names
from ..errors import CorruptFile
from ..files import read_whole, write_atomically
from ..work import Work


def read_clean_offsets(disk: Disk, directory: str) -> dict[TopicPartition, int]:
    """Read the clean offsets. Without a readable file the whole log counts as dirty, which costs only time."""
    try:
        content = read_whole(disk, f"{directory}/{names.CLEANER_OFFSETS}", checkpoints.CHECKPOINT_BYTES_MAX)
        return checkpoints.decode_offsets(content)
    except (FileNotFoundError, CorruptFile):
        return {}


def clean_offsets_work(
    disk: Disk, directory: str, offsets: Mapping[TopicPartition, int], done: Callable[[BaseException | None], None]
) -> Work:
    """Return work that writes the file outside the loop. Only one write runs at a time, so an older one cannot
    overwrite a newer one.
    """
    content = checkpoints.encode_offsets(offsets)
    path = f"{directory}/{names.CLEANER_OFFSETS}"
    return Work(lambda: write_atomically(disk, path, content), lambda _result, error: done(error))

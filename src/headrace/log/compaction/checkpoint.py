"""How far the logs of a directory are clean: `cleaner-offset-checkpoint`, in Kafka's format."""

from collections.abc import Callable, Mapping

from headrace.model.ids import TopicPartition
from headrace.ports.disk import Disk

from .. import checkpoints, names
from ..errors import CorruptFile
from ..files import read_whole, write_atomically
from ..work import Work


def read_clean_offsets(disk: Disk, directory: str) -> dict[TopicPartition, int]:
    """Without a readable file everything is dirty, which costs time and nothing else."""
    try:
        content = read_whole(disk, f"{directory}/{names.CLEANER_OFFSETS}", checkpoints.CHECKPOINT_BYTES_MAX)
        return checkpoints.decode_offsets(content)
    except (FileNotFoundError, CorruptFile):
        return {}


def clean_offsets_work(
    disk: Disk, directory: str, offsets: Mapping[TopicPartition, int], done: Callable[[BaseException | None], None]
) -> Work:
    """Write the file away from the loop; one at a time, because an older one must not overtake a newer one."""
    content = checkpoints.encode_offsets(offsets)
    path = f"{directory}/{names.CLEANER_OFFSETS}"
    return Work(lambda: write_atomically(disk, path, content), lambda _result, error: done(error))

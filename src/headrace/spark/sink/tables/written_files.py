"""The description of a file that a task wrote: all that the driver needs to commit it."""

import os
from typing import NamedTuple

PartitionValues = tuple[tuple[str, str | None], ...]


class WrittenFile(NamedTuple):
    """A complete, synced file; its path is relative to the folder of the task."""

    path: str
    size_bytes: int
    records: int
    partition_values: PartitionValues


def sync_folder(path: str) -> None:
    """Sync the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""What is known of a file that a task wrote: enough to commit it, without what it was written with."""

import os
from typing import NamedTuple

PartitionValues = tuple[tuple[str, str | None], ...]


class WrittenFile(NamedTuple):
    """A whole file, synced, relative to the folder it was written in."""

    path: str
    size_bytes: int
    records: int
    partition_values: PartitionValues


def sync_folder(path: str) -> None:
    """Make the names in a folder last."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

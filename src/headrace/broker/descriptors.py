"""How the file descriptors of the process are shared: some for log files, some for connections, a few for the rest.

Without shares a crowd of connections would leave none for the log files that it wants to read and write.
"""

from typing import NamedTuple

SPARE = 40
"""Descriptors for everything else: listeners, locks, metadata, what helpers open for a moment, modules loaded late."""
LOG_FILES_SHARE = 2
"""Of the rest, one in so many is for log files."""
LEAST = 16
"""However few there are, so many are shared out."""
UNLIMITED = -1


class DescriptorShares(NamedTuple):
    log_files_max: int
    connections_max: int


def shares(descriptors_max: int, *, open_files_max: int, connections_max: int) -> DescriptorShares:
    """What the configs allow, as far as the process has descriptors for it."""
    if descriptors_max == UNLIMITED:
        return DescriptorShares(open_files_max, connections_max)
    free = max(descriptors_max - SPARE, LEAST)
    log_files = min(open_files_max, free // LOG_FILES_SHARE)
    return DescriptorShares(log_files, min(connections_max, free - log_files))

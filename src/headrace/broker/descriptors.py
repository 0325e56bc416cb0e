"""Shares of the process's file descriptors: some for log files, some for connections, a few for the rest.

Without shares, many connections would leave no descriptors for the log files that they want to read and write.
"""

from typing import NamedTuple

SPARE = 40
"""Descriptors for everything else: listeners, locks, metadata, files that helpers open briefly, modules loaded late."""
LOG_FILES_SHARE = 2
"""One in this number of the remaining descriptors is for log files."""
LEAST = 16
"""Number of descriptors that are shared out even if the process has fewer."""
UNLIMITED = -1


class DescriptorShares(NamedTuple):
    log_files_max: int
    connections_max: int


def shares(descriptors_max: int, *, open_files_max: int, connections_max: int) -> DescriptorShares:
    """Return the limits of the configs, reduced to the descriptors that the process has."""
    if descriptors_max == UNLIMITED:
        return DescriptorShares(open_files_max, connections_max)
    free = max(descriptors_max - SPARE, LEAST)
    log_files = min(open_files_max, free // LOG_FILES_SHARE)
    return DescriptorShares(log_files, min(connections_max, free - log_files))

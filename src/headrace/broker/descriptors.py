"""How the file descriptors of the process are shared: some for log files, some for connections, a few for the rest.

Without shares a crowd of connections would leave none for the log files that it wants to read and write.
"""

from typing import NamedTuple

LOG_FILES_SHARE = 2
"""One in so many descriptors is for log files."""
SPARE_SHARE = 8
"""One in so many is for everything else: locks, directories, checkpoints, helpers."""
UNLIMITED = -1


class DescriptorShares(NamedTuple):
    log_files_max: int
    connections_max: int


def shares(descriptors_max: int, *, open_files_max: int, connections_max: int) -> DescriptorShares:
    """What the configs allow, as far as the process has descriptors for it."""
    if descriptors_max == UNLIMITED:
        return DescriptorShares(open_files_max, connections_max)
    log_files = min(open_files_max, descriptors_max // LOG_FILES_SHARE)
    connections = descriptors_max - log_files - descriptors_max // SPARE_SHARE
    return DescriptorShares(log_files, min(connections_max, connections))

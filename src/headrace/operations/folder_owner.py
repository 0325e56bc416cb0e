"""The process that uses a data folder, by the lock that it holds there."""

import errno
import fcntl
import os

from headrace.log.names import LOCK

OWNER_BYTES_MAX = 32
UNKNOWN_OWNER = 0


def folder_owner(folder: str | os.PathLike[str]) -> int | None:
    """Return the process id of the owner, or UNKNOWN_OWNER; None if no process uses the folder.

    Raises FileNotFoundError if no broker has ever used it.
    """
    lock = os.open(os.path.join(folder, LOCK), os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        owner = os.pread(lock, OWNER_BYTES_MAX, 0).strip()
        return int(owner) if owner.isdigit() else UNKNOWN_OWNER
    finally:
        os.close(lock)
    return None

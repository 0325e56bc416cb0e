"""The uptime of a log directory: the total time that brokers have used it, over all starts.

It measures the inactivity of producers: a jump of the wall clock cannot change it, and time without a broker counts
zero. A small file stores it between starts. The broker writes it every minute, so a crash loses at most a minute, and
without the file the count begins at zero: both make the broker remember a producer for longer, never for less time.
"""

from collections.abc import Callable

from headrace.ports.disk import Disk

from . import checkpoints, names
from .errors import CorruptFile
from .files import read_whole, replace_file

UPTIME_CHECKPOINT_MS = 60_000

_KEY = "uptime.ms"


class DirectoryUptime:
    """`ms` is the uptime at the last call of `advance`, which every round of housekeeping makes."""

    __slots__ = ("_before_ms", "_started_ms", "ms")

    def __init__(self, before_ms: int = 0) -> None:
        self._before_ms = before_ms
        self._started_ms: float | None = None
        self.ms = before_ms

    def advance(self, monotonic_ms: float) -> None:
        """Advance to the given time of the monotonic clock; the first call begins the count of this start."""
        if self._started_ms is None:
            self._started_ms = monotonic_ms
        self.ms = self._before_ms + int(monotonic_ms - self._started_ms)


def encode(uptime_ms: int) -> bytes:
    return checkpoints.encode_properties({"version": "0", _KEY: str(uptime_ms)})


def decode(content: bytes) -> int:
    found = checkpoints.decode_properties(content)
    try:
        uptime_ms = int(found[_KEY])
    except (KeyError, ValueError) as error:
        raise CorruptFile(f"the uptime checkpoint has no number {_KEY}") from error
    if found.get("version") != "0" or uptime_ms < 0:
        raise CorruptFile("the uptime checkpoint has an unsupported version or a negative value")
    return uptime_ms


def load(disk: Disk, folder: str, notice: Callable[[str], None]) -> DirectoryUptime:
    path = f"{folder}/{names.UPTIME}"
    try:
        return DirectoryUptime(decode(read_whole(disk, path, checkpoints.PROPERTIES_BYTES_MAX)))
    except FileNotFoundError:
        return DirectoryUptime()
    except CorruptFile as error:
        notice(f"{path}: {error}; the uptime restarts at zero, so producers are remembered for longer")
        return DirectoryUptime()


def save(disk: Disk, folder: str, uptime_ms: int) -> None:
    """Replace the file. A power cut may lose the new name; then the older file remains."""
    replace_file(disk, f"{folder}/{names.UPTIME}", encode(uptime_ms))

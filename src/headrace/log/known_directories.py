"""Which log directories a node has used, written down in the one that holds its metadata.

An empty folder where a disk used to be mounted looks like a new log directory. Taken for one, the partitions of the
missing disk would begin again at offset 0; so a path whose directory is gone counts as missing until it is back, or
until the path is taken out of `log.dirs`.
"""

from collections.abc import Iterable, Mapping, Sequence

from headrace.ports.disk import Disk

from . import names
from .checkpoints import PROPERTIES_BYTES_MAX, decode_properties, encode_properties, encode_uuid
from .directory import LogDirectory, read_meta_properties
from .errors import CorruptFile
from .files import read_whole, write_atomically


def read_known(disk: Disk, home: str) -> dict[str, str]:
    """Directory ids by path, as of the last start; empty if that is not known."""
    try:
        return decode_properties(read_whole(disk, f"{home}/{names.KNOWN_DIRECTORIES}", PROPERTIES_BYTES_MAX))
    except (FileNotFoundError, CorruptFile):
        return {}


def missing(disk: Disk, paths: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Paths whose directory is at none of them any more."""
    there = {_directory_id(disk, path) for path in paths}
    return [path for path in paths if path in known and known[path] not in there]


def _directory_id(disk: Disk, path: str) -> str | None:
    try:
        return read_meta_properties(disk, path).get("directory.id")
    except (OSError, CorruptFile):
        return None


def write_known(
    disk: Disk, home: str, paths: Sequence[str], known: Mapping[str, str], opened: Iterable[LogDirectory]
) -> None:
    """Those that are open now; of the others that are still wanted, what was known stays."""
    now = {path: known[path] for path in paths if path in known}
    now |= {directory.path: encode_uuid(directory.directory_id) for directory in opened}
    if now != known:
        write_atomically(disk, f"{home}/{names.KNOWN_DIRECTORIES}", encode_properties(now))

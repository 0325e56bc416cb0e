"""Record the log directories that a node has used, in the directory that holds its metadata.

An empty folder at an unmounted disk's path looks like a new log directory. If the broker used it as one, the partitions
of the missing disk would restart at offset 0. So a path whose directory is gone counts as missing until the directory
is back, or until the path is removed from `log.dirs`.
"""

from collections.abc import Iterable, Mapping, Sequence

from headrace.ports.disk import Disk

from . import names
from .checkpoints import PROPERTIES_BYTES_MAX, decode_properties, encode_properties, encode_uuid
from .directory import LogDirectory, read_meta_properties
from .errors import CorruptFile
from .files import read_whole, write_atomically


def read_known(disk: Disk, home: str) -> dict[str, str]:
    """Return directory ids by path, as of the last start; empty if the file is missing or unreadable."""
    try:
        return decode_properties(read_whole(disk, f"{home}/{names.KNOWN_DIRECTORIES}", PROPERTIES_BYTES_MAX))
    except (FileNotFoundError, CorruptFile):
        return {}


def missing(disk: Disk, paths: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Return the paths whose known directory is no longer found at any path."""
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
    """Record the open directories; known entries of other configured paths are kept."""
    now = {path: known[path] for path in paths if path in known}
    now |= {directory.path: encode_uuid(directory.directory_id) for directory in opened}
    if now != known:
        write_atomically(disk, f"{home}/{names.KNOWN_DIRECTORIES}", encode_properties(now))

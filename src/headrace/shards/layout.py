"""Folders of shards: `shard-0`, `shard-1` and so on below the data folder, and the file that counts them.

The folder of a single broker becomes `shard-0` by renames. A crash between two of them leaves a folder that the next
start completes, and that no single broker opens, because the file with the number of shards is already there.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from headrace.log import names
from headrace.log.cluster_key import read_cluster_key, write_cluster_key
from headrace.ports.real.disk import RealDisk
from headrace.shards.errors import ShardError

SHARDS_FILE = "shards.json"
SHARDS_FILE_BYTES_MAX = 4096
SHARDS_MAX = 256
NODE_ID_STEP = 1000
"""Distance between the node ids of two shards of a parent: shard 2 of node 1 is node 2001."""

_ADOPTED = ".adopted"
"""The folder that becomes `shard-0`: no topic has this name, whereas a topic `shard` has a folder `shard-0`."""
_STAYING = frozenset({names.LOCK, SHARDS_FILE, _ADOPTED})
_TEMPORARY = ".tmp"


def shard_folder(folder: str, shard: int) -> str:
    return f"{folder}/shard-{shard}"


def shard_node_id(node_id: int, shard: int) -> int:
    return node_id + shard * NODE_ID_STEP


def shards_in(folder: str) -> int:
    """Return the number of shards that a data folder has: 1 for the folder of a single broker, or a new one."""
    return _read(Path(folder))[0]


def is_formatted(folder: str) -> bool:
    """Tell whether a node has used this folder as its first log directory."""
    return (Path(folder) / names.META_PROPERTIES).exists()


def check_count(folders: Sequence[str], count: int) -> None:
    """Raise ShardError if the folders have more shards than `count`."""
    for folder in folders:
        found = shards_in(folder)
        if found > count:
            raise ShardError(
                f"data folder {folder} has {found} shards, asked for {count}: the number of shards can only grow, "
                f"because the replicas on the others would be lost; start it with --shards {found}"
            )


def prepare(folders: Sequence[str], count: int) -> None:
    """Make the folders of `count` shards, from the folder of a single broker if there is one.

    The caller holds the lock of the first folder.
    """
    check_count(folders, count)
    for folder in map(Path, folders):
        folder.mkdir(parents=True, exist_ok=True)
        found, is_adopting = _read(folder)
        if found == 1 and not is_adopting and is_formatted(str(folder)):
            (folder / _ADOPTED).mkdir(exist_ok=True)
            _write(folder, count, is_adopting=True)
            is_adopting = True
        if is_adopting:
            _adopt(folder)
        if is_adopting or found != count:
            _write(folder, count, is_adopting=False)
        for shard in range(count):
            os.makedirs(shard_folder(str(folder), shard), exist_ok=True)


def _adopt(folder: Path) -> None:
    """Move what the single broker wrote into `shard-0`."""
    adopted = folder / _ADOPTED
    if not adopted.exists():
        return  # the last rename is done
    for name in sorted(os.listdir(folder)):
        if name not in _STAYING:
            os.rename(folder / name, adopted / name)
    _sync_folder(adopted)
    os.rename(adopted, shard_folder(str(folder), 0))
    _sync_folder(folder)


def _read(folder: Path) -> tuple[int, bool]:
    """Return the number of shards, and whether the folder of a single broker is still to be moved."""
    path = folder / SHARDS_FILE
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(SHARDS_FILE_BYTES_MAX))
        count, is_adopting = content["shards"], content["adopting"]
    except FileNotFoundError:
        return 1, False
    except (ValueError, KeyError, TypeError):
        count, is_adopting = 0, False
    if not isinstance(count, int) or not 1 <= count <= SHARDS_MAX:
        raise ShardError(
            f'{path} is damaged: write {{"shards": N, "adopting": false}} into it, where N is the number of folders '
            "shard-0, shard-1 and so on beside it"
        )
    return count, bool(is_adopting)


def _write(folder: Path, count: int, *, is_adopting: bool) -> None:
    temporary = folder / (SHARDS_FILE + _TEMPORARY)
    with temporary.open("w", encoding="ascii") as file:
        json.dump({"shards": count, "adopting": is_adopting}, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, folder / SHARDS_FILE)
    _sync_folder(folder)


def has_key(folder: str) -> bool:
    return read_cluster_key(RealDisk(), folder) is not None


def copy_key(source: str, target: str) -> None:
    """Give the cluster key of one shard to another, which thereby belongs to the same cluster."""
    key = read_cluster_key(RealDisk(), source)
    assert key is not None, f"{source} has no cluster key"
    write_cluster_key(RealDisk(), target, key)


def _sync_folder(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)

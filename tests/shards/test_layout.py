"""Folders of shards: a single broker's folder becomes shard 0, and the number of shards only grows."""

import os
from pathlib import Path

import pytest

from headrace.log.cluster_key import ClusterKey, write_cluster_key
from headrace.ports.real.disk import RealDisk
from headrace.shards import layout
from headrace.shards.errors import ShardError


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def single_broker(folder: str) -> dict[str, bytes]:
    """Write what a single broker may have left, and return its files; a topic may be named as the shards are."""
    files = {"meta.properties": b"node.id=1", "shard-0/00000000000000000000.log": b"kept", "orders-0/x.log": b"more"}
    for name, content in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (Path(folder) / ".lock").write_text("1")
    return files


def files_below(folder: str) -> dict[str, bytes]:
    root = Path(folder)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_new_folder_gets_a_folder_per_shard(folder: str) -> None:
    assert layout.shards_in(folder) == 1
    layout.prepare([folder], 3)
    assert layout.shards_in(folder) == 3
    assert sorted(os.listdir(folder)) == ["shard-0", "shard-1", "shard-2", "shards.json"]


def test_the_folder_of_a_single_broker_becomes_shard_0(folder: str) -> None:
    files = single_broker(folder)
    layout.prepare([folder], 2)
    assert files_below(f"{folder}/shard-0") == files
    assert sorted(os.listdir(folder)) == [".lock", "shard-0", "shard-1", "shards.json"]


@pytest.mark.parametrize("renames", range(5))
def test_a_crash_between_two_renames_is_completed_by_the_next_start(
    folder: str, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    files = single_broker(folder)
    left = renames

    class Crash(Exception):
        pass

    rename = os.rename

    def crashing(source: object, target: object) -> None:
        nonlocal left
        if left == 0:
            raise Crash
        left -= 1
        rename(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rename", crashing)
    with pytest.raises(Crash):
        layout.prepare([folder], 2)
    monkeypatch.setattr(os, "rename", rename)
    if renames:
        with pytest.raises(ShardError, match="has 2 shards, asked for 1"):
            layout.check_count([folder], 1)  # no single broker opens a folder that is half moved
    layout.prepare([folder], 2)
    assert files_below(f"{folder}/shard-0") == files
    layout.prepare([folder], 2)
    assert files_below(f"{folder}/shard-0") == files


def test_shards_are_added_but_never_removed(folder: str) -> None:
    layout.prepare([folder], 2)
    layout.prepare([folder], 3)
    with pytest.raises(ShardError, match="has 3 shards, asked for 2: the number of shards can only grow"):
        layout.prepare([folder], 2)
    assert layout.shards_in(folder) == 3


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"shards": 0, "adopting": false}', '{"shards": "2"}', "\0"])
def test_a_damaged_count_is_refused_with_advice(folder: str, content: str) -> None:
    layout.prepare([folder], 2)
    (Path(folder) / "shards.json").write_text(content)
    with pytest.raises(ShardError, match=r"shards\.json is damaged: write"):
        layout.check_count([folder], 2)


def test_every_log_directory_has_a_folder_per_shard(tmp_path: Path) -> None:
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    layout.prepare(folders, 2)
    assert all(os.path.isdir(layout.shard_folder(each, shard)) for each in folders for shard in range(2))


def test_a_copied_key_can_be_read_by_its_owner_alone(folder: str) -> None:
    layout.prepare([folder], 2)
    write_cluster_key(RealDisk(), f"{folder}/shard-0", ClusterKey("cluster", bytes(range(32))))
    assert not layout.has_key(f"{folder}/shard-1")
    layout.copy_key(f"{folder}/shard-0", f"{folder}/shard-1")
    copied = Path(folder, "shard-1", "cluster.key")
    assert copied.read_bytes() == Path(folder, "shard-0", "cluster.key").read_bytes()
    assert copied.stat().st_mode & 0o777 == 0o600

"""The machine under the benchmark: its memory taken before, and folders that are no disk."""

import os
import threading
from pathlib import Path

import pytest

from headrace.bench import machine
from headrace.bench.errors import CannotBeMeasured

pytestmark = pytest.mark.process

TOTAL_BYTES = 8 << 20
TRIES_MAX = 10


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A machine of a few megabytes, and the folder of a test taken for a disk."""
    memory = {"MemTotal": TOTAL_BYTES, "MemFree": 1 << 40}
    monkeypatch.setattr(machine, "_memory_bytes", lambda field: memory[field])
    monkeypatch.setattr(machine, "IN_MEMORY", ())
    return memory


def touched_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the bytes read while memory is touched, of a file without a place on the disk, which is then removed."""
    read, total, own_thread = os.preadv, 0, threading.current_thread()

    def count(descriptor: int, buffers: list[bytearray], position: int, *flags: int) -> int:
        nonlocal total
        got = read(descriptor, buffers, position, *flags)
        total += got if threading.current_thread() is own_thread else 0  # brokers of other tests read too
        return got

    monkeypatch.setattr(os, "preadv", count)
    with machine.touched_memory(folder):
        (file,) = folder.iterdir()
        assert file.stat().st_size == TOTAL_BYTES
        assert file.stat().st_blocks == 0
    assert list(folder.iterdir()) == []
    return total


def test_all_memory_is_touched(tmp_path: Path, small_memory: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert touched_bytes(tmp_path, monkeypatch) == TOTAL_BYTES


def test_little_is_left_to_others(
    tmp_path: Path, small_memory: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_memory["MemFree"] = machine.TOUCH_UNTIL_FREE_BYTES - 1
    assert touched_bytes(tmp_path, monkeypatch) == 0


def test_memory_is_not_touched_through_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "file_system", lambda folder: "tmpfs")
    with pytest.raises(CannotBeMeasured, match="give --folder on a disk"), machine.touched_memory(tmp_path):
        pass


def is_forgotten(file: Path) -> bool:
    with file.open("rb") as opened:
        try:
            os.preadv(opened.fileno(), [bytearray(1)], 65_536, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
    return False


def test_data_is_forgotten_by_the_system(tmp_path: Path) -> None:
    """As far as the file system can forget pages, and no process uses the page just then; all files count."""

    def dropped(folder: Path) -> Path:
        (folder / "folder").mkdir(parents=True)
        (folder / "folder" / "one").write_bytes(bytes(100_000))
        (folder / "two").write_bytes(bytes(50_000))
        assert machine.drop_from_cache(folder) == 150_000
        return folder / "folder" / "one"

    tries = (dropped(tmp_path / str(number)) for number in range(TRIES_MAX))
    assert any(map(is_forgotten, tries)) or machine.file_system(tmp_path) != "ext4"

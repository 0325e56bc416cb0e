"""Flipped bits, truncations, zeros, swapped sectors in every kind of file: rebuilt or refused, not served as good."""

import random
from typing import Any

import pytest

from headrace.broker.cluster import metadata_log
from headrace.wire.records.header import HEADER, LENGTH, LOG_OVERHEAD, PRODUCER_ID
from tests.disks.golden import Golden, outcome

pytestmark = pytest.mark.slow

SEED = 20_240_317
FLIPS, CUTS, ZEROS, SWAPS = 6, 3, 3, 2
SECTOR_BYTES = 512
CHECKED_FROM = 16
"""Offset, length and leader epoch of a batch stand before what its checksum covers."""

KINDS = {
    "segments": lambda path: path.endswith(".log") and "__cluster" not in path,
    "offset indexes": lambda path: path.endswith(".index"),
    "time indexes": lambda path: path.endswith(".timeindex"),
    "producer snapshots": lambda path: path.endswith(".snapshot"),
    "leader epochs": lambda path: path.endswith("leader-epoch-checkpoint"),
    "offset checkpoints": lambda path: path.endswith("-offset-checkpoint"),
    "partition.metadata": lambda path: path.endswith("partition.metadata"),
    "meta.properties": lambda path: path.endswith("meta.properties"),
    "metadata log": lambda path: "__cluster" in path and path.endswith(".log"),
    "vote": lambda path: path.endswith("quorum-state"),
    "metadata snapshots": lambda path: path.endswith(".checkpoint"),
    "clean shutdown": lambda path: path.endswith("cleanshutdown"),
}


@pytest.fixture(scope="module")
def golden():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata_log, "SNAPSHOT_INTERVAL_BYTES", 2_000)
        patch.setattr(metadata_log.MetadataLog.open.__func__, "__kwdefaults__", _small_snapshots())
        return {clean: Golden(clean=clean) for clean in (True, False)}


def _small_snapshots():
    return {**metadata_log.MetadataLog.open.__func__.__kwdefaults__, "snapshot_interval_bytes": 2_000}


def uncovered(content):
    """Positions of a segment that no checksum covers."""
    found: set[Any] = set()
    position = 0
    while position + HEADER.size <= len(content):
        length = HEADER.unpack_from(content, position)[LENGTH]
        if length <= 0:
            break
        found.update(range(position, position + CHECKED_FROM))
        position += length + LOG_OVERHEAD
    return found


def flipped(content, source, forbidden):
    while True:
        position = source.randrange(len(content))
        if position not in forbidden:
            changed = bytearray(content)
            changed[position] ^= 1 << source.randrange(8)
            return bytes(changed)


def zeroed(content, source):
    begin = source.randrange(len(content))
    end = min(len(content), begin + source.choice((1, 8, 64, SECTOR_BYTES)))
    return content[:begin] + bytes(end - begin) + content[end:]


def swapped(content, source):
    size = SECTOR_BYTES if len(content) >= 2 * SECTOR_BYTES else max(1, len(content) // 4)
    sectors = [content[at : at + size] for at in range(0, len(content), size)]
    first, second = source.sample(range(len(sectors)), 2) if len(sectors) > 1 else (0, 0)
    sectors[first], sectors[second] = sectors[second], sectors[first]
    return b"".join(sectors)


def damages(path, content, source):
    yield "gone", None
    yield "empty", b""
    if not content:
        return
    forbidden = uncovered(content) if path.endswith(".log") else set()
    for _ in range(FLIPS):
        yield "flip", flipped(content, source, forbidden)
    for _ in range(CUTS):
        yield "cut", content[: source.randrange(len(content))]
    for _ in range(ZEROS):
        yield "zeros", zeroed(content, source)
    for _ in range(SWAPS):
        yield "swap", swapped(content, source)


def _is_oldest(path, paths):
    """After a kill the oldest segment may be gone because retention took it since the last checkpoint."""
    folder = path.rpartition("/")[0]
    return path == min(other for other in paths if other.startswith(folder))


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_rebuilt_or_refused_and_never_served_as_good(golden, kind, clean):
    source = random.Random(f"{SEED} {kind} {clean}")
    whole = golden[clean]
    paths = [path for path in whole.files if KINDS[kind](path)]
    if not clean and not paths:
        return  # only a clean stop leaves such a file
    assert paths, f"there are no {kind}"
    met = set()
    for path in source.sample(paths, min(len(paths), 4)):
        for damage, content in damages(path, whole.files[path], source):
            if content == whole.files[path] or (damage == "gone" and not clean and _is_oldest(path, paths)):
                continue
            try:
                met.add(outcome(whole, {path: content}, may_cut=not clean))
            except AssertionError as error:
                raise AssertionError(f"{damage} of {path}: {error}") from error
    assert met


def test_golden_folders_have_every_kind_of_file(golden):
    for kind, matches in KINDS.items():
        assert any(matches(path) for path in golden[True].files), kind
    segments = [path for path in golden[True].files if KINDS["segments"](path)]
    assert len(segments) > 6
    assert HEADER.unpack_from(golden[True].files[segments[0]])[PRODUCER_ID] >= 1000
    assert outcome(golden[True], {}) == outcome(golden[False], {}) == "whole whole whole"


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_one_damaged_partition_leaves_the_others_alone(golden, clean):
    path = min(path for path in golden[clean].files if path.startswith("data/many-0/") and path.endswith(".log"))
    assert (
        outcome(golden[clean], {path: golden[clean].files[path][:-10]}, may_cut=not clean).split()[1:] == ["whole"] * 2
    )


def test_a_lost_end_is_distinguished_from_free_space(golden):
    """A clean stop says where a log ends: zeros or a cut at a batch there are damage, not preallocated space."""
    whole = golden[True]
    path = max(path for path in whole.files if path.startswith("data/many-0/") and path.endswith(".log"))
    content = whole.files[path]
    last, position = 0, 0
    while position < len(content):
        last, position = position, position + HEADER.unpack_from(content, position)[LENGTH] + LOG_OVERHEAD
    for changed in (content[:last], content[:last] + bytes(len(content) - last), None):
        assert outcome(whole, {path: changed}).startswith("refused")

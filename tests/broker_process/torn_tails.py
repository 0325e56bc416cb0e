"""Damage a killed process may leave at the end of its segments: half a batch, zeros, noise."""

import random
from collections.abc import Iterator
from pathlib import Path

from headrace.wire.records.header import BASE_OFFSET, HEADER, HEADER_SIZE, LENGTH, LOG_OVERHEAD, MAGIC, MAGIC_AT

TORN_BYTES_MAX = 5000


def segments_written_last(data_dir: Path, topic: str) -> list[Path]:
    """The newest segment of each partition of a topic."""
    folders = sorted(data_dir.glob(f"{topic}-[0-9]*"))
    return [max(folder.glob("*.log")) for folder in folders if any(folder.glob("*.log"))]


def batches(content: bytes) -> Iterator[tuple[int, int]]:
    """(start, end) of every whole batch, up to the first bytes that are none."""
    position = 0
    while len(content) - position >= HEADER_SIZE:
        fields = HEADER.unpack_from(content, position)
        end = position + LOG_OVERHEAD + fields[LENGTH]
        if fields[MAGIC] != content[MAGIC_AT + position] or fields[LENGTH] <= 0 or end > len(content):
            return
        yield position, end
        position = end


def tear(segment: Path, source: random.Random) -> str:
    """Write what a write that was cut off could have left behind the last whole batch; what it was."""
    content = segment.read_bytes()
    whole = list(batches(content))
    end = whole[-1][1] if whole else 0
    kind = source.choice(("half a batch", "zeros", "noise", "nothing"))
    torn = b""
    if kind == "half a batch" and whole:
        start, stop = whole[-1]
        offset = HEADER.unpack_from(content, start)[BASE_OFFSET] + 1
        batch = offset.to_bytes(8, "big") + content[start + 8 : stop]
        torn = batch[: source.randrange(1, len(batch))]
    elif kind == "zeros":
        torn = bytes(source.randrange(1, TORN_BYTES_MAX))
    elif kind == "noise":
        torn = source.randbytes(source.randrange(1, TORN_BYTES_MAX))
    with segment.open("r+b") as file:
        file.seek(end)
        file.write(torn)
    return kind

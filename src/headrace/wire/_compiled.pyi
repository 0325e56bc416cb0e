from collections.abc import Mapping
from typing import TypeVar

from headrace.wire.records.batch_walk import WalkBounds, Walked
from headrace.wire.repeats import Repeat

Shape = TypeVar("Shape")

def are_sound(plain: bytes | bytearray | memoryview, count: int, base_timestamp: int, /) -> bool: ...
def read_repeat(
    buffer: memoryview, position: int, end: int, shapes: Mapping[bytes, Shape], shape_bytes: int, /
) -> Repeat[Shape] | None: ...
def walk_batches(batches: memoryview, bounds: WalkBounds, /) -> Walked: ...

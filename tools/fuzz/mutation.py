"""Seeded mutation without any tool: numbers that lie, ranges cut, doubled, moved, and mixed with other inputs."""

from collections.abc import Callable, Sequence
from random import Random

from tools.fuzz.target import INPUT_BYTES_MAX

LYING_NUMBERS = tuple(
    bytes.fromhex(text)
    for text in (
        *("7fffffff", "80000000", "ffffffff", "fffffffe", "00000000", "00000001", "7fff", "8000", "ffff", "00ff"),
        *(
            "ffffffff07",
            "ffffffff0f",
            "ffffffffff",
            "8080808010",
            "8000",
            "ff01",
            "7fffffffffffffff",
            "8000000000000000",
        ),
    )
)
"""Lengths and counts as fixed numbers and as varints: huge, negative, null, and longer than a varint may be."""

BYTE_VALUES = (0x00, 0x01, 0x02, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
STEPS_MAX = 4
RUN_BYTES_MAX = 64

Step = Callable[[Random, bytearray, bytes], None]


def _place(random: Random, size: int) -> int:
    return int(random.random() * size)


def _flip_a_bit(random: Random, body: bytearray, _other: bytes) -> None:
    body[_place(random, len(body))] ^= 1 << _place(random, 8)


def _set_a_byte(random: Random, body: bytearray, _other: bytes) -> None:
    body[_place(random, len(body))] = BYTE_VALUES[_place(random, len(BYTE_VALUES))]


def _any_byte(random: Random, body: bytearray, _other: bytes) -> None:
    body[_place(random, len(body))] = _place(random, 256)


def _add_a_little(random: Random, body: bytearray, _other: bytes) -> None:
    at = _place(random, len(body))
    body[at] = (body[at] + _place(random, 9) - 4) & 0xFF


def _lie(random: Random, body: bytearray, _other: bytes) -> None:
    number = LYING_NUMBERS[_place(random, len(LYING_NUMBERS))]
    at = _place(random, len(body))
    body[at : at + len(number)] = number


def _insert_a_lie(random: Random, body: bytearray, _other: bytes) -> None:
    at = _place(random, len(body))
    body[at:at] = LYING_NUMBERS[_place(random, len(LYING_NUMBERS))]


def _cut_the_end(random: Random, body: bytearray, _other: bytes) -> None:
    del body[_place(random, len(body)) :]


def _cut_a_run(random: Random, body: bytearray, _other: bytes) -> None:
    at = _place(random, len(body))
    del body[at : at + 1 + _place(random, RUN_BYTES_MAX)]


def _double_a_run(random: Random, body: bytearray, _other: bytes) -> None:
    at, to = _place(random, len(body)), _place(random, len(body))
    body[to:to] = body[at : at + 1 + _place(random, RUN_BYTES_MAX)]


def _noise(random: Random, body: bytearray, _other: bytes) -> None:
    at = _place(random, len(body))
    run = random.randbytes(1 + _place(random, 16))
    body[at : at + len(run)] = run


def _splice(random: Random, body: bytearray, other: bytes) -> None:
    if other:
        body[_place(random, len(body)) :] = other[_place(random, len(other)) :]


STEPS: tuple[Step, ...] = (
    *(_flip_a_bit, _flip_a_bit, _set_a_byte, _set_a_byte, _any_byte, _add_a_little, _lie, _lie, _insert_a_lie),
    *(_cut_the_end, _cut_a_run, _double_a_run, _noise, _splice),
)


class Mutator:
    """The same seed and pool give the same inputs in the same order."""

    def __init__(self, seed: int | str, pool: Sequence[bytes]) -> None:
        assert pool, "there is nothing to mutate"
        self._random = Random(seed)
        self._pool = pool

    def next(self) -> bytes:
        random, pool = self._random, self._pool
        body = bytearray(pool[_place(random, len(pool))])
        other = pool[_place(random, len(pool))]
        for _ in range(1 + _place(random, STEPS_MAX)):
            if not body:
                body.append(0)
            STEPS[_place(random, len(STEPS))](random, body, other)
        return bytes(body[:INPUT_BYTES_MAX])

"""Damage to the files of a folder, written as bytes: so that any input says what to damage, and none is wasted.

A step is five bytes: which file, what to do, where (two bytes), and with what.
"""

from headrace.wire.records.header import HEADER_SIZE, LENGTH_AT, LOG_OVERHEAD
from tools.fuzz.records import mend

STEP_BYTES = 5
STEPS_MAX = 16
FILE_BYTES_MAX = 1 << 16
NUMBERS = tuple(
    bytes.fromhex(text)
    for text in ("7fffffff", "80000000", "ffffffff", "00000000", "00000001", "0000000000000001", "7fffffffffffffff")
)


def apply(steps: bytes, files: dict[str, bytearray]) -> None:
    """Damage the files in place; names may go and come as well."""
    for at in range(0, min(len(steps), STEPS_MAX * STEP_BYTES) - STEP_BYTES + 1, STEP_BYTES):
        names = sorted(files)
        if not names:
            return
        which, kind, high, low, argument = steps[at : at + STEP_BYTES]
        name = names[which % len(names)]
        content = files[name]
        if kind % KINDS == 0:
            del files[name]
        elif kind % KINDS == 1:
            _move_name(files, name, argument)
        elif content:
            _damage(content, kind % KINDS, (high << 8 | low) % len(content), argument)
            del content[FILE_BYTES_MAX:]
        else:
            content.extend(bytes((argument,)) * 12)


def _move_name(files: dict[str, bytearray], name: str, argument: int) -> None:
    """Give a file the name of another offset, or of an unfinished write."""
    folder, _, last = name.rpartition("/")
    digits, dot, suffix = last.partition(".")
    if argument & 0x80 or not digits.isdigit():
        files[f"{name}.tmp"] = files.pop(name)
        return
    files[f"{folder}/{int(digits) + argument - 3 & (1 << 62) - 1:020d}{dot}{suffix}"] = files.pop(name)


def _damage(content: bytearray, kind: int, position: int, argument: int) -> None:
    match kind:
        case 2:
            content[position] = argument
        case 3:
            content[position] ^= 1 << (argument & 7)
        case 4:
            del content[position:]
        case 5:
            content.extend(bytes(argument * 4))
        case 6:
            content.extend(bytes((argument + 37 * number) & 0xFF for number in range(argument + 1)))
        case 7:
            content[position : position + argument] = bytes(min(argument, len(content) - position))
        case 8:
            number = NUMBERS[argument % len(NUMBERS)]
            content[position : position + len(number)] = number
        case 9:
            content[position:position] = content[argument : argument + 64]
        case 10:
            del content[position : position + argument + 1]
        case 11:
            content.extend(content[position : position + argument * 2])
        case _:
            _mend_batch(content, argument)


KINDS = 14
"""Two of names, eleven of bytes, and twice the one that makes a checksum true again."""


def _mend_batch(content: bytearray, number: int) -> None:
    """Make length and checksum of the batch of that number true, as far as batches can be distinguished."""
    position = 0
    for _ in range(number % 8):
        if len(content) - position < HEADER_SIZE:
            break
        size = LOG_OVERHEAD + int.from_bytes(content[position + LENGTH_AT : position + LOG_OVERHEAD], "big")
        if size > len(content) - position:
            break
        position += size
    mend(content, position)

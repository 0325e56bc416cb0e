"""A case: its name, the features it needs, its topic, and the function that asserts."""

import hashlib
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compat.client import Client, Failed, Feature, Message, Received
from headrace.model.errors import ErrorCode

VISIBLE_S_MAX = 60.0
VISIBLE_POLL_S = 0.05

CaseFunction = Callable[[Client, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    group: str
    name: str
    run: CaseFunction
    needs: frozenset[Feature] = frozenset()
    partitions: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)
    without_topic: bool = False
    """The topic's name is given, but the topic is not created."""
    auto_creation: bool = False
    """Runs on a broker that creates the topics its clients name."""
    alone: bool = False
    """Runs in its own process where possible: some older clients do not survive it."""


def now_ms() -> int:
    return int(time.time() * 1000)


def sample(count: int, *, seed: int, value_size: int = 100) -> list[Message]:
    """Messages that differ in everything a client may set but time and headers; half of a value compresses well."""
    source = random.Random(seed)
    messages = []
    for number in range(count):
        size = source.randint(1, value_size)
        value = b"%d " % number + b"x" * (size - size // 2) + source.randbytes(size // 2)
        messages.append(Message(key=b"key %d" % (number % 7), value=value))
    return messages


def digest(records: Iterable[Message | Received]) -> str:
    """Of keys, values and headers in their order."""
    checksum = hashlib.sha256()
    for record in records:
        for part in (record.key, record.value, *(item for header in record.headers for item in header)):
            encoded = part.encode() if isinstance(part, str) else part
            checksum.update(b"\0" if encoded is None else b"\1%d:" % len(encoded) + encoded)
    return checksum.hexdigest()


def assert_same(received: Sequence[Received], sent: Sequence[Message], *, first_offset: int = 0) -> None:
    """All of it, once each, in order, at offsets without a gap."""
    assert [record.offset for record in received] == list(range(first_offset, first_offset + len(sent)))
    assert digest(received) == digest(sent)


def eventually(holds: Callable[[], bool]) -> bool:
    """Return whether the condition becomes true soon: a broker may respond before every client can see a change."""
    deadline = time.monotonic() + VISIBLE_S_MAX
    while True:
        try:
            if holds():
                return True
        except Failed:
            pass
        if time.monotonic() > deadline:
            return False
        time.sleep(VISIBLE_POLL_S)


def assert_refused(code: ErrorCode, call: Callable[..., object], *arguments: object, **named: object) -> None:
    got: object
    try:
        got = call(*arguments, **named)
    except Failed as failed:
        if failed.code is code:
            return
        got = failed
    raise AssertionError(f"expected {code.name}, got {got!r}")

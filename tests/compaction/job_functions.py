"""Jobs for the tests: a module of their own, because their processes import it."""

import os
from collections.abc import Iterator

from headrace.ports.spawner import BytesProcessed


def counting(count: int) -> Iterator[BytesProcessed | int]:
    for number in range(count):
        yield BytesProcessed(100)
        yield number


def describing_itself() -> Iterator[tuple[int, int, int]]:
    yield os.getpid(), os.getppid(), os.sched_getscheduler(0)


def failing() -> Iterator[int]:
    yield 1
    raise ValueError("on purpose")


def dying() -> Iterator[int]:
    yield 1
    os._exit(7)


def failing_oddly() -> Iterator[int]:
    class Odd(Exception):
        """Cannot be pickled, because it is local."""

    yield 1
    raise Odd("odd")


def endless(path: str) -> Iterator[BytesProcessed | int]:
    yield os.getpid()
    while True:
        with open(path, "a") as file:
            file.write("x")
        yield BytesProcessed(1)

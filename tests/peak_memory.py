"""The memory that a call needs at once, with nothing in it of what else goes on in the process."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TIMES = 3
"""A call needs the same each time; a garbage collection or another thread is in one measurement, not in all."""


@contextmanager
def allocations_traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def allocates_less_than(limit: int, call: Callable[[], object]) -> bool:
    """Return whether `call` can do with less; to be asked while allocations are traced."""
    return any(_peak_bytes(call) < limit for _ in range(TIMES))


def _peak_bytes(call: Callable[[], object]) -> int:
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    call()
    _, peak = tracemalloc.get_traced_memory()
    return peak - before

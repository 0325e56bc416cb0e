"""Lines for the log of the driver and the executors, each said once by a process."""

import sys

LINES_REMEMBERED_MAX = 1_000

_said: dict[str, None] = {}


def say_once(line: str) -> None:
    """To stderr, which Spark keeps with its own log."""
    if line in _said:
        return
    if len(_said) >= LINES_REMEMBERED_MAX:
        del _said[next(iter(_said))]
    _said[line] = None
    print(f"headrace: {line}", file=sys.stderr, flush=True)

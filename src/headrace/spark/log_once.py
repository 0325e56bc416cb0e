"""Write lines to the log of the driver and the executors."""

import sys

LINES_REMEMBERED_MAX = 1_000

_said: dict[str, None] = {}


def log_line(line: str) -> None:
    """Write to stderr, which Spark keeps with its own log."""
    print(f"headrace: {line}", file=sys.stderr, flush=True)


def log_once(line: str) -> None:
    """Write a line at most once per process."""
    if line in _said:
        return
    if len(_said) >= LINES_REMEMBERED_MAX:
        del _said[next(iter(_said))]
    _said[line] = None
    log_line(line)

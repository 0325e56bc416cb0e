"""Lines for the log of the driver and the executors."""

import sys

LINES_REMEMBERED_MAX = 1_000

_said: dict[str, None] = {}


def say(line: str) -> None:
    """To stderr, which Spark keeps with its own log."""
    print(f"headrace: {line}", file=sys.stderr, flush=True)


def log_once(line: str) -> None:
    """What a process has said before, it does not say again."""
    if line in _said:
        return
    if len(_said) >= LINES_REMEMBERED_MAX:
        del _said[next(iter(_said))]
    _said[line] = None
    say(line)

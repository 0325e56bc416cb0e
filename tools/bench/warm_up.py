"""Warm-up of a subject that runs on a just-in-time compiler."""

import time
from collections import deque

from headrace.bench.figures import spread
from headrace.bench.rounds import Measured, ProgressReport

WARM_SECONDS_MIN = 5.0
WARM_SECONDS_MAX = 25.0
WARM_ROUNDS_ALIKE = 3
SETTLED_SPREAD_MAX = 0.1
"""A subject is warm if the spread of WARM_ROUNDS_ALIKE consecutive rounds is at most this."""


def warm_up(load: str, name: str, measured: Measured, *, figure: str, report: ProgressReport) -> None:
    """Run rounds that do not count until the figure is stable: a just-in-time compiler needs some seconds of load."""
    began = time.monotonic()
    latest: deque[float] = deque(maxlen=WARM_ROUNDS_ALIKE)
    is_settled = False
    while time.monotonic() - began < (WARM_SECONDS_MIN if is_settled else WARM_SECONDS_MAX):
        report(f"{load}: {name}, warming up")
        latest.append(measured().get(figure, 0.0))
        is_settled = len(latest) == WARM_ROUNDS_ALIKE and spread(latest) <= SETTLED_SPREAD_MAX

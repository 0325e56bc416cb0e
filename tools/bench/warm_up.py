"""Warm-up of a subject that runs on a just-in-time compiler."""

import time
from collections import deque

from headrace.bench.figures import spread
from headrace.bench.rounds import Measured, Told

WARM_SECONDS_MIN = 5.0
WARM_SECONDS_MAX = 25.0
WARM_ROUNDS_ALIKE = 3
SETTLED_SPREAD_MAX = 0.1
"""A subject is warm when a figure of this many rounds in a row spreads by less than this part."""


def warm_up(load: str, name: str, measured: Measured, *, figure: str, tell: Told) -> None:
    """Rounds that do not count, until the figure settles: a just-in-time compiler needs some seconds of a load."""
    began = time.monotonic()
    latest: deque[float] = deque(maxlen=WARM_ROUNDS_ALIKE)
    is_settled = False
    while time.monotonic() - began < (WARM_SECONDS_MIN if is_settled else WARM_SECONDS_MAX):
        tell(f"{load}: {name}, warming up")
        latest.append(measured().get(figure, 0.0))
        is_settled = len(latest) == WARM_ROUNDS_ALIKE and spread(latest) <= SETTLED_SPREAD_MAX

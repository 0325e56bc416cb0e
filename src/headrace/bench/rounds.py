"""Rounds in turns: A B A B, so that whatever changes on the machine meanwhile meets all subjects alike."""

import os
import time
from collections import deque
from collections.abc import Callable, Mapping

from headrace.bench.figures import Measurement, Round, spread

WARM_SECONDS_MIN = 5.0
WARM_SECONDS_MAX = 25.0
WARM_ROUNDS_ALIKE = 3
SETTLED_SPREAD_MAX = 0.1
"""A subject is warm when a figure of so many rounds in a row spreads by less than this part."""

Measured = Callable[[], Round]
"""Does one round and gives its figures; raises RunRejected when it does not count."""

Told = Callable[[str], None]
"""Is told what happens now."""


def settle_disk() -> None:
    """What one subject left to be written is not written during the round of the next."""
    os.sync()


def in_turns(load: str, subjects: Mapping[str, Measured], *, rounds: int, client: str, tell: Told) -> list[Measurement]:
    """So many rounds of each subject, one after the other."""
    found: dict[str, list[Round]] = {name: [] for name in subjects}
    for number in range(rounds):
        for name, measured in subjects.items():
            tell(f"{load}: {name}, round {number + 1} of {rounds}")
            settle_disk()
            found[name].append(measured())
    return [
        Measurement(load=load, subject=name, client=client, rounds=tuple(results)) for name, results in found.items()
    ]


def warm_up(load: str, name: str, measured: Measured, *, figure: str, tell: Told) -> None:
    """Rounds that do not count, until the figure settles: a just-in-time compiler needs some seconds of a load."""
    began = time.monotonic()
    latest: deque[float] = deque(maxlen=WARM_ROUNDS_ALIKE)
    is_settled = False
    while time.monotonic() - began < (WARM_SECONDS_MIN if is_settled else WARM_SECONDS_MAX):
        tell(f"{load}: {name}, warming up")
        latest.append(measured().get(figure, 0.0))
        is_settled = len(latest) == WARM_ROUNDS_ALIKE and spread(latest) <= SETTLED_SPREAD_MAX

"""Rounds in turns: A B A B, so that whatever changes on the machine meanwhile meets all subjects alike."""

import os
import time
from collections.abc import Callable, Mapping

from headrace.bench.figures import Measurement, Round

WARM_SECONDS_MIN = 4.0
WARM_SECONDS_MAX = 20.0
SETTLED_CHANGE_MAX = 0.1
"""A subject is warm when a figure changes by less than this part from one round to the next."""

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
    began, previous, is_settled = time.monotonic(), 0.0, False
    while time.monotonic() - began < (WARM_SECONDS_MIN if is_settled else WARM_SECONDS_MAX):
        tell(f"{load}: {name}, warming up")
        value = measured().get(figure, 0.0)
        is_settled = abs(value - previous) <= SETTLED_CHANGE_MAX * value
        previous = value

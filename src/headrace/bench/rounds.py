"""Rounds in turns: A B A B, so that whatever changes on the machine meanwhile meets all subjects alike."""

import os
from collections.abc import Callable, Mapping

from headrace.bench.figures import Measurement, Round

WARM_ROUNDS_MAX = 6
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
    """Rounds that do not count, until the figure settles: a just-in-time compiler needs some."""
    previous = 0.0
    for number in range(WARM_ROUNDS_MAX):
        tell(f"{load}: {name}, warming up {number + 1}")
        value = measured().get(figure, 0.0)
        if abs(value - previous) <= SETTLED_CHANGE_MAX * value:
            return
        previous = value

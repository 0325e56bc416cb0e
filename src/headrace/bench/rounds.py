"""Rounds in turns: A B A B, so that whatever changes on the machine meanwhile meets all subjects alike."""

import os
from collections.abc import Callable, Mapping

from headrace.bench.figures import Measurement, Round

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

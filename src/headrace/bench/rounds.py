"""Interleaved rounds (A B A B), so that changes on the machine affect all subjects alike."""

import os
from collections.abc import Callable, Mapping

from headrace.bench.figures import Measurement, Round

Measured = Callable[[], Round]
"""Runs one round and returns its figures; raises RunRejected if the round does not count."""

ProgressReport = Callable[[str], None]
"""Receives the description of the current step."""


def settle_disk() -> None:
    """Flush all dirty pages, so that writes of one subject do not disturb the round of the next."""
    os.sync()


def in_turns(
    load: str, subjects: Mapping[str, Measured], *, rounds: int, client: str, report: ProgressReport
) -> list[Measurement]:
    """Run `rounds` interleaved rounds of all subjects."""
    found: dict[str, list[Round]] = {name: [] for name in subjects}
    for number in range(rounds):
        for name, measured in subjects.items():
            report(f"{load}: {name}, round {number + 1} of {rounds}")
            settle_disk()
            found[name].append(measured())
    return [
        Measurement(load=load, subject=name, client=client, rounds=tuple(results)) for name, results in found.items()
    ]

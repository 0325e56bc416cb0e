"""Start loads: a broker process up to its first Metadata response, and an embedded broker in a test."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from headrace.bench import processes
from headrace.bench.brokers import BrokerProcess
from headrace.bench.figures import Round
from tools.bench.idle import SETTLE_SECONDS

EMBEDDED_SECONDS_MAX = 60

_EMBEDDED_PROGRAM = """
import json, time
began = time.perf_counter()
from headrace.testing import EmbeddedBroker
imported = time.perf_counter()
broker = EmbeddedBroker().start()
ready = time.perf_counter()
broker.stop()
print(json.dumps({"import_ms": (imported - began) * 1e3, "embedded_ms": (ready - imported) * 1e3}))
"""


class StartRounds:
    """Rounds with a new broker each, on an empty folder."""

    def __init__(self, make_broker: Callable[[Path], BrokerProcess], folder: Path) -> None:
        self._make_broker = make_broker
        self._folder = folder
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        broker = self._make_broker(self._folder / f"start-{self._round}")
        began = time.monotonic()
        with broker.start():
            seconds = time.monotonic() - began
            time.sleep(SETTLE_SECONDS)
            resident = broker.resident_bytes() or 0
        return {"metadata_seconds": seconds, "idle_megabytes": resident / 1e6}


def embedded_round(folder: Path) -> Round:
    """Measure in a new interpreter: the import that a test starts with, and the start of the broker."""
    command = processes.python_command("-c", _EMBEDDED_PROGRAM)
    output = processes.run(command, messages=folder / "embedded.txt", seconds_max=EMBEDDED_SECONDS_MAX)
    return msgspec.json.decode(output, type=dict[str, float])

"""Setup of a load: a folder, a client and running brokers."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from headrace.bench.brokers import (
    BrokerProcess,
    HeadraceBroker,
    MeasuredBroker,
    PurePythonBroker,
    wait_for_metadata,
)
from headrace.bench.machine import bench_folder, touched_memory
from headrace.bench.replay import ReplayClient
from headrace.bench.rounds import ProgressReport
from headrace.bench.topics import delete_topics

ANSWER_SECONDS_MAX = 5
"""Time limit for the first response of a running broker."""


BrokerMaker = Callable[[Path, Mapping[str, str] | None], BrokerProcess]
"""Makes a broker from its data folder and its settings, without starting it."""


class Setup(NamedTuple):
    folder: Path
    client: ReplayClient
    brokers: list[MeasuredBroker]
    topic_prefix: str
    """Prefix of the topic names of this run."""


@contextmanager
def prepared(
    *,
    folder: Path | None,
    bootstrap: str | None,
    broker_pid: int | None,
    touch: bool,
    compiled: bool,
    report: ProgressReport,
    settings: Mapping[str, str] | None = None,
    with_pure_python: bool = False,
    beside: Sequence[BrokerMaker] = (),
) -> Iterator[Setup]:
    """Prepare the running broker at `bootstrap`, or a new one with these settings, and further new brokers.

    `compiled` selects the replay client written in C. `with_pure_python` adds a broker without compiled helpers, and
    `beside` adds brokers of other kinds, which are measured in alternating rounds.
    """
    with ExitStack() as stack:
        own_folder = stack.enter_context(bench_folder(folder))
        if touch:
            report("touching the memory")
            stack.enter_context(touched_memory(own_folder))
        brokers: list[MeasuredBroker] = []
        if bootstrap is not None:
            wait_for_metadata(bootstrap, seconds_max=ANSWER_SECONDS_MAX)
            brokers.append(MeasuredBroker(bootstrap, bootstrap, broker_pid))
        else:
            brokers.append(_started(stack, HeadraceBroker(own_folder / "headrace", settings), report))
        if with_pure_python:
            brokers.append(_started(stack, PurePythonBroker(own_folder / "pure-python", settings), report))
        for number, make in enumerate(beside):
            brokers.append(_started(stack, make(own_folder / f"beside-{number}", settings), report))
        topic_prefix = f"bench-{secrets.token_hex(4)}"
        if bootstrap is not None:
            stack.callback(delete_topics, bootstrap, topic_prefix)
        yield Setup(own_folder, ReplayClient(own_folder, compiled=compiled), brokers, topic_prefix)


def _started(stack: ExitStack, broker: BrokerProcess, report: ProgressReport) -> BrokerProcess:
    report(f"starting {broker.name}")
    return stack.enter_context(broker).start()

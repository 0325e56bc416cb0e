"""What a load needs around it: a folder, a client, and brokers that run."""

import secrets
from collections.abc import Iterator, Mapping
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
from headrace.bench.kafka import KafkaBroker
from headrace.bench.machine import bench_folder, touched_memory
from headrace.bench.replay import ReplayClient
from headrace.bench.rounds import Told
from headrace.bench.topics import delete_topics

ANSWER_SECONDS_MAX = 5
"""For the first answer of a broker that is said to run."""


class Setup(NamedTuple):
    folder: Path
    client: ReplayClient
    brokers: list[MeasuredBroker]
    topics: str
    """What the names of this run's topics begin with."""


@contextmanager
def prepared(
    *,
    folder: Path | None,
    bootstrap: str | None,
    broker_pid: int | None,
    with_kafka: bool,
    touch: bool,
    compiled: bool,
    tell: Told,
    settings: Mapping[str, str] | None = None,
    with_pure_python: bool = False,
) -> Iterator[Setup]:
    """A running broker as named by `bootstrap`, or a new one with these settings; and the others that are wanted.

    `compiled` is about the client; `with_pure_python` adds a broker that uses no compiled helper."""
    with ExitStack() as stack:
        own_folder = stack.enter_context(bench_folder(folder))
        if touch:
            tell("touching the memory")
            stack.enter_context(touched_memory(own_folder))
        brokers: list[MeasuredBroker] = []
        if bootstrap is not None:
            wait_for_metadata(bootstrap, seconds_max=ANSWER_SECONDS_MAX)
            brokers.append(MeasuredBroker(bootstrap, bootstrap, broker_pid))
        else:
            brokers.append(_started(stack, HeadraceBroker(own_folder / "headrace", settings), tell))
        if with_pure_python:
            brokers.append(_started(stack, PurePythonBroker(own_folder / "pure-python", settings), tell))
        if with_kafka:
            brokers.append(_started(stack, KafkaBroker(own_folder / "kafka", settings), tell))
        topics = f"bench-{secrets.token_hex(4)}"
        if bootstrap is not None:
            stack.callback(delete_topics, bootstrap, topics)
        yield Setup(own_folder, ReplayClient(own_folder, compiled=compiled), brokers, topics)


def _started(stack: ExitStack, broker: BrokerProcess, tell: Told) -> BrokerProcess:
    tell(f"starting {broker.name}")
    return stack.enter_context(broker).start()

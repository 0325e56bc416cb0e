"""Loads on groups: commits that are read back, and groups that lose a member."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import pytest

from headrace.bench.brokers import MeasuredBroker
from headrace.bench.errors import RunRejected
from headrace.bench.figures import Round
from headrace.bench.replay import ReplayClient
from headrace.testing import EmbeddedBroker
from tools.bench import commits
from tools.bench.commits import CommitRounds
from tools.bench.members import ConsumerMember, Fleet
from tools.bench.rebalance import CLASSIC, CONSUMER, STABLE_SECONDS_MAX, RebalanceLoad, RebalanceRounds

pytestmark = pytest.mark.process

TINY = RebalanceLoad(protocol=CLASSIC, members=5, partitions=7, session_ms=600, interval_ms=100)
SLOWER = [TINY, replace(TINY, session_ms=6_000, interval_ms=1_000), replace(TINY, session_ms=30_000, interval_ms=5_000)]
"""Members whose machine stands still for a session are expelled: then they get a longer one."""


@contextmanager
def running_broker(load: RebalanceLoad) -> Iterator[MeasuredBroker]:
    config = {
        **load.settings(),
        "group.min.session.timeout.ms": "100",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
    }
    with EmbeddedBroker(config=config) as running:
        yield MeasuredBroker("headrace", running.bootstrap_servers, running.process_id)


@pytest.fixture(scope="module")
def quick() -> Iterator[MeasuredBroker]:
    with running_broker(TINY) as broker:
        yield broker


def lose_twice(load: RebalanceLoad) -> list[Round]:
    with running_broker(load) as broker:
        rounds = RebalanceRounds(broker, load, topic=f"loses-{load.protocol}")
        return [rounds() for _ in range(2)]


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
def test_a_group_loses_a_member(protocol: str) -> None:
    loads = [replace(load, protocol=protocol) for load in SLOWER]
    for load in loads:
        try:
            rounds = lose_twice(load)
            break
        except RunRejected:
            if load is loads[-1]:
                raise
    for found in rounds:
        assert set(found) == {"stable_seconds", "cpu_ms"}
        # The broker counts from the heartbeat, the load from its answer.
        assert -load.session_ms / 1000 < found["stable_seconds"] < STABLE_SECONDS_MAX


def test_a_group_that_does_not_become_stable_is_noticed(quick: MeasuredBroker) -> None:
    rounds = RebalanceRounds(quick, replace(TINY, protocol=CONSUMER), topic="unstable")
    with (
        mock.patch("tools.bench.rebalance.FORM_SECONDS_MAX", 0.3),
        mock.patch.object(RebalanceRounds, "_stable", return_value=False),
        pytest.raises(RunRejected, match="a stable group"),
    ):
        rounds()


def test_a_member_that_is_refused_is_noticed(quick: MeasuredBroker) -> None:
    member = ConsumerMember(quick.address, "nowhere", "nowhere", 0)
    fleet = Fleet([member])
    member.generation = 7
    member.beat_at = 0.0
    with pytest.raises(RunRejected, match=r"GROUP_ID_NOT_FOUND|NOT_COORDINATOR"):
        fleet.run_until(lambda: False, seconds_max=10, what="nothing")
    fleet.close()


def test_commits_are_read_back(broker: MeasuredBroker, client: ReplayClient, topic: str) -> None:
    rounds = CommitRounds(broker, client, topic=topic, connections=3, depth=2, seconds=0.1)
    for _ in range(2):
        found = rounds()
        assert found["requests_per_second"] > 0
        assert found["cpu_us_per_request"] >= 0


def test_an_offset_that_is_not_there_is_noticed(broker: MeasuredBroker, client: ReplayClient, topic: str) -> None:
    rounds = CommitRounds(broker, client, topic=topic, connections=3, depth=1, seconds=0.1)
    made = commits.commit_frames
    with (
        mock.patch.object(commits, "commit_frames", lambda name, offsets: made(name, dict.fromkeys(offsets, 1))),
        pytest.raises(RunRejected, match="3 of 3 groups have a different offset"),
    ):
        rounds()

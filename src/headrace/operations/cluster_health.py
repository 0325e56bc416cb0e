"""Health of a cluster in one word, with the reasons when it is not green."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.client.types import ClusterDescription, QuorumDescription, TopicDescription
from headrace.model.ids import NO_NODE
from headrace.operations.amounts import count_text

VOTER_LAG_MAX = 1_000
"""Entries that a healthy voter may be behind the leader of the quorum."""


class Health(StrEnum):
    GREEN = "green"
    YELLOW = "yellow"
    """Everything is served, but less may fail than usual."""
    RED = "red"
    """Something is not served."""


class Reason(NamedTuple):
    health: Health
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHealth:
    health: Health
    reasons: tuple[str, ...]
    """Worst first; empty for a green cluster."""
    fenced_brokers: tuple[int, ...]
    partitions: int
    partitions_without_leader: int


class ClusterStatus(NamedTuple):
    cluster: ClusterDescription
    quorum: QuorumDescription | None
    """None if it could not be described."""
    topics: int
    health: ClusterHealth


def cluster_status(admin: Admin) -> ClusterStatus:
    """Describe the cluster and assess its health."""
    cluster = admin.cluster(include_fenced=True)
    why = ""
    quorum: QuorumDescription | None = None
    try:
        quorum = admin.quorum()
    except ClientError as error:
        why = str(error)
    topics = admin.topics()
    return ClusterStatus(cluster, quorum, len(topics), assess(cluster, quorum, topics, why=why))


def assess(
    cluster: ClusterDescription, quorum: QuorumDescription | None, topics: Sequence[TopicDescription], *, why: str = ""
) -> ClusterHealth:
    """Assess a cluster; `quorum` is None if it could not be described, and `why` is the reason."""
    partitions = [partition for topic in topics for partition in topic.partitions]
    leaderless = sum(partition.leader == NO_NODE for partition in partitions)
    fenced = tuple(broker.node_id for broker in cluster.brokers if broker.is_fenced)
    reasons = sorted(
        _reasons(quorum, why=why, fenced=fenced, leaderless=leaderless), key=lambda reason: reason.health != Health.RED
    )
    worst = reasons[0].health if reasons else Health.GREEN
    return ClusterHealth(
        health=worst,
        reasons=tuple(reason.text for reason in reasons),
        fenced_brokers=fenced,
        partitions=len(partitions),
        partitions_without_leader=leaderless,
    )


def _reasons(quorum: QuorumDescription | None, *, why: str, fenced: Sequence[int], leaderless: int) -> Iterator[Reason]:
    if quorum is None:
        yield Reason(Health.RED, f"no controller answers, so that topics and configs cannot be changed: {why}")
    if leaderless:
        verb = "has" if leaderless == 1 else "have"
        yield Reason(Health.RED, f"{count_text(leaderless, 'partition')} {verb} no leader")
    if fenced:
        noun, verb = ("broker", "is") if len(fenced) == 1 else ("brokers", "are")
        yield Reason(Health.YELLOW, f"{noun} {', '.join(map(str, fenced))} {verb} fenced: start it, or see its log")
    if quorum is not None:
        yield from _quorum_reasons(quorum)


def _quorum_reasons(quorum: QuorumDescription) -> Iterator[Reason]:
    for voter in quorum.voters:
        if voter.lag > VOTER_LAG_MAX:
            yield Reason(
                Health.YELLOW,
                f"voter {voter.node_id} is {voter.lag} entries behind",
            )
    if len(quorum.voters) % 2 == 0:
        yield Reason(
            Health.YELLOW,
            f"{len(quorum.voters)} controllers vote: an even number tolerates no more failures than one less",
        )

"""Health of a cluster in one word, with the reasons when it is not green."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.client.types import (
    ClusterDescription,
    PartitionDescription,
    QuorumDescription,
    TopicDescription,
)
from headrace.model.ids import NO_NODE
from headrace.operations.amounts import count_text
from headrace.operations.eligible_replicas import with_eligible
from headrace.operations.times import duration_text

NAMED_MAX = 3
"""Partitions that a reason names; of the others it gives the number."""

VOTER_LAG_MAX = 1_000
"""Entries that a healthy voter may be behind the leader of the quorum."""
VOTER_SILENCE_MS_MAX = 10_000
"""Time without a response after which a voter counts as lost; a live one responds several times a second."""


class Health(StrEnum):
    GREEN = "green"
    YELLOW = "yellow"
    """Everything is served, but less may fail than usual."""
    RED = "red"
    """Something is not served."""


class Reason(NamedTuple):
    health: Health
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHealth:
    health: Health
    reasons: tuple[str, ...]
    """Worst first; empty for a green cluster."""
    fenced_brokers: tuple[int, ...]
    partitions: int
    partitions_without_leader: int
    partitions_under_replicated: int
    """Partitions with a leader and fewer in-sync replicas than replicas."""


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
    listed = admin.topics()
    leaderless = (topic for topic in listed if any(each.leader == NO_NODE for each in topic.partitions))
    topics = with_eligible(admin, listed, islice(leaderless, NAMED_MAX))
    return ClusterStatus(cluster, quorum, len(topics), assess(cluster, quorum, topics, why=why))


def assess(
    cluster: ClusterDescription, quorum: QuorumDescription | None, topics: Sequence[TopicDescription], *, why: str = ""
) -> ClusterHealth:
    """Assess a cluster; `quorum` is None if it could not be described, and `why` is the reason."""
    partitions = [(topic.name, partition) for topic in topics for partition in topic.partitions]
    leaderless = [each for each in partitions if each[1].leader == NO_NODE]
    behind = [each for each in partitions if each[1].leader != NO_NODE and len(each[1].isr) < len(each[1].replicas)]
    fenced = tuple(broker.node_id for broker in cluster.brokers if broker.is_fenced)
    found = (
        *_quorum_reasons(quorum, why=why),
        *_partition_reasons(leaderless, behind),
        *_broker_reasons(fenced),
    )
    reasons = sorted(found, key=lambda reason: reason.health != Health.RED)
    worst = reasons[0].health if reasons else Health.GREEN
    return ClusterHealth(
        health=worst,
        reasons=tuple(reason.text for reason in reasons),
        fenced_brokers=fenced,
        partitions=len(partitions),
        partitions_without_leader=len(leaderless),
        partitions_under_replicated=len(behind),
    )


def _partition_reasons(
    leaderless: Sequence[tuple[str, PartitionDescription]], behind: Sequence[tuple[str, PartitionDescription]]
) -> Iterator[Reason]:
    if leaderless:
        verb = "has" if len(leaderless) == 1 else "have"
        names = _named(leaderless, _why_leaderless)
        yield Reason(Health.RED, f"{count_text(len(leaderless), 'partition')} {verb} no leader: {names}")
    if behind:
        verb = "lacks" if len(behind) == 1 else "lack"
        names = _named(behind, _why_behind)
        yield Reason(Health.YELLOW, f"{count_text(len(behind), 'partition')} {verb} in-sync replicas: {names}")


def _named(partitions: Sequence[tuple[str, PartitionDescription]], why: Callable[[PartitionDescription], str]) -> str:
    names = [f"{topic}-{partition.partition} ({why(partition)})" for topic, partition in partitions[:NAMED_MAX]]
    more = len(partitions) - NAMED_MAX
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _why_leaderless(partition: PartitionDescription) -> str:
    """Return which brokers to start, or that the live replicas may lack records."""
    if partition.last_known and not partition.isr and not partition.eligible:
        return _why_logs_are_compared(partition)
    if set(partition.replicas) <= set(partition.offline):
        return f"{_brokers(partition.replicas)} not running"
    live = [node for node in partition.replicas if node not in partition.offline]
    if not partition.offline:
        return f"waits for {_brokers(partition.replicas, verb=False)} to be ready"
    return f"{_brokers(partition.offline)} not running, and {_brokers(live, verb=False)} may lack acknowledged records"


def _why_logs_are_compared(partition: PartitionDescription) -> str:
    """Return which brokers must run before the controller chooses the one with the longest log."""
    away = [node for node in partition.last_known if node in partition.offline]
    known = _brokers(partition.last_known, verb=False)
    text = f"{known} had every record and may have lost some: the longest log leads when all of them have reported it"
    return f"{text}; {_brokers(away)} not running" if away else text


def _why_behind(partition: PartitionDescription) -> str:
    offline = [node for node in partition.replicas if node in partition.offline]
    lagging = [node for node in partition.replicas if node not in partition.isr and node not in offline]
    reasons = []
    if offline:
        reasons.append(f"{_brokers(offline)} not running")
    if lagging:
        reasons.append(f"{_brokers(lagging)} behind")
    return " and ".join(reasons)


def _brokers(nodes: Sequence[int], *, verb: bool = True) -> str:
    noun, ending = ("broker", " is") if len(nodes) == 1 else ("brokers", " are")
    return f"{noun} {', '.join(map(str, nodes))}{ending if verb else ''}"


def _broker_reasons(fenced: Sequence[int]) -> Iterator[Reason]:
    if fenced:
        yield Reason(Health.YELLOW, f"{_brokers(fenced)} fenced: start it, or see its log")


def _quorum_reasons(quorum: QuorumDescription | None, *, why: str) -> Iterator[Reason]:
    if quorum is None:
        yield Reason(Health.RED, f"no controller answers, so that topics and configs cannot be changed: {why}")
    else:
        yield from quorum_reasons(quorum)


def quorum_reasons(quorum: QuorumDescription) -> Iterator[Reason]:
    """Yield what is wrong with the voters of the metadata quorum."""
    now_ms = max((voter.heard_ms or 0 for voter in quorum.voters), default=0)  # the leader hears itself
    for voter in quorum.voters:
        silent_ms = 0 if voter.heard_ms is None else now_ms - voter.heard_ms
        if silent_ms > VOTER_SILENCE_MS_MAX:
            yield Reason(
                Health.YELLOW,
                f"voter {voter.node_id} has not responded for {duration_text(silent_ms)}",
                "start it, or see its log; headrace cluster voters remove NODE removes one that is gone for good",
            )
        elif voter.lag > VOTER_LAG_MAX:
            yield Reason(
                Health.YELLOW, f"voter {voter.node_id} is {voter.lag} entries behind", "check its machine and network"
            )
    if len(quorum.voters) % 2 == 0:
        yield Reason(
            Health.YELLOW,
            f"{len(quorum.voters)} controllers vote: an even number tolerates no more failures than one less",
            "start another controller; it is promoted up to headrace.controllers.target",
        )

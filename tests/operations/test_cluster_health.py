"""The health of a cluster: green, or the reasons why not."""

from headrace.client.types import (
    Broker,
    ClusterDescription,
    PartitionDescription,
    QuorumDescription,
    QuorumReplica,
    TopicDescription,
)
from headrace.operations.cluster_health import Health, assess


def cluster(*fenced: int) -> ClusterDescription:
    brokers = tuple(Broker(node, "a", 9092, None, node in fenced) for node in (1, 2, 3))
    return ClusterDescription(cluster_id="c", controller_id=1, brokers=brokers)


def quorum(*lags: int) -> QuorumDescription:
    voters = tuple(QuorumReplica(node, 100, lag, None) for node, lag in enumerate(lags, 1))
    return QuorumDescription(leader=1, leader_epoch=1, high_watermark=100, voters=voters, observers=())


def topic(*leaders: int) -> TopicDescription:
    partitions = (
        PartitionDescription(partition=number, leader=leader, leader_epoch=0, replicas=(1,), isr=(1,), offline=())
        for number, leader in enumerate(leaders)
    )
    return TopicDescription(name="orders", partitions=tuple(partitions))


def test_a_cluster_without_faults_is_green() -> None:
    found = assess(cluster(), quorum(0, 0, 5), [topic(1, 2, 3)])
    assert (found.health, found.reasons, found.partitions) == (Health.GREEN, (), 3)


def test_a_fenced_broker_makes_it_yellow() -> None:
    found = assess(cluster(2), quorum(0, 0, 0), [topic(1, 3)])
    assert found.health is Health.YELLOW
    assert found.reasons == ("broker 2 is fenced: start it, or see its log",)
    assert found.fenced_brokers == (2,)


def test_a_partition_without_a_leader_makes_it_red_and_is_told_first() -> None:
    found = assess(cluster(2), quorum(0, 0, 0), [topic(1, -1)])
    assert found.health is Health.RED
    assert found.reasons[0] == "1 partition has no leader"
    assert len(found.reasons) == 2


def test_a_lost_quorum_makes_it_red_with_the_reason() -> None:
    found = assess(cluster(), None, [topic(1)], why="there is no active controller since noon")
    assert found.health is Health.RED
    assert found.reasons == (
        "no controller answers, so that topics and configs cannot be changed: there is no active controller since noon",
    )


def test_voters_that_lag_or_are_even_in_number_make_it_yellow() -> None:
    found = assess(cluster(), quorum(0, 5_000), [])
    assert found.health is Health.YELLOW
    assert found.reasons == (
        "voter 2 is 5000 entries behind",
        "2 controllers vote: an even number tolerates no more failures than one less",
    )

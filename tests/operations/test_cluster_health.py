"""The health of a cluster: green, or the reasons why not."""

from dataclasses import replace

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


def test_a_partition_without_a_leader_makes_it_red_and_comes_first() -> None:
    found = assess(cluster(2), quorum(0, 0, 0), [topic(1, -1)])
    assert found.health is Health.RED
    assert found.reasons[0] == "1 partition has no leader: orders-1 (waits for broker 1 to be ready)"
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


def partition(number: int, *, leader: int, isr: tuple[int, ...], offline: tuple[int, ...] = ()) -> PartitionDescription:
    return PartitionDescription(
        partition=number, leader=leader, leader_epoch=0, replicas=(1, 2, 3), isr=isr, offline=offline
    )


def test_partitions_that_lack_replicas_are_named_with_the_reason() -> None:
    orders = TopicDescription(
        name="orders",
        partitions=(
            partition(0, leader=1, isr=(1, 2, 3)),
            partition(1, leader=1, isr=(1, 3), offline=(2,)),
            partition(2, leader=3, isr=(3,), offline=(2,)),
        ),
    )
    found = assess(cluster(2), quorum(0, 0, 0), [orders])
    assert found.health is Health.YELLOW
    assert found.reasons == (
        "2 partitions lack in-sync replicas: orders-1 (broker 2 is not running), "
        "orders-2 (broker 2 is not running and broker 1 is behind)",
        "broker 2 is fenced: start it, or see its log",
    )
    assert (found.partitions_under_replicated, found.partitions_without_leader) == (2, 0)


def test_partitions_without_a_leader_say_which_brokers_to_start() -> None:
    orders = TopicDescription(
        name="orders",
        partitions=(
            partition(0, leader=-1, isr=(), offline=(1, 2, 3)),
            partition(1, leader=-1, isr=(), offline=(1, 2)),
            *(partition(number, leader=-1, isr=(), offline=(1,)) for number in range(2, 5)),
        ),
    )
    (reason,) = assess(cluster(), quorum(0, 0, 0), [orders]).reasons
    assert reason == (
        "5 partitions have no leader: orders-0 (brokers 1, 2, 3 are not running), orders-1 (brokers 1, 2 are not "
        "running, and broker 3 may lack acknowledged records), orders-2 (broker 1 is not running, and brokers 2, 3 "
        "may lack acknowledged records) and 2 more"
    )


def test_a_voter_that_does_not_respond_makes_it_yellow_although_it_lacks_nothing() -> None:
    voters = tuple(QuorumReplica(node, 100, 0, None, heard_ms=heard) for node, heard in ((1, 90_000), (2, 89_900)))
    lost = QuorumReplica(3, 100, 0, None, heard_ms=55_000)
    described = QuorumDescription(leader=1, leader_epoch=1, high_watermark=100, voters=(*voters, lost), observers=())
    assert assess(cluster(), described, []).reasons == ("voter 3 has not responded for 35 s",)


def test_a_partition_that_lost_its_last_records_names_the_brokers_whose_logs_are_compared() -> None:
    lost = PartitionDescription(
        partition=0, leader=-1, leader_epoch=0, replicas=(1, 2, 3), isr=(), offline=(3,), last_known=(2, 3)
    )
    found = assess(cluster(3), quorum(0, 0, 0), [TopicDescription(name="orders", partitions=(lost,))])
    assert found.health is Health.RED
    assert found.reasons[0] == (
        "1 partition has no leader: orders-0 (brokers 2, 3 had every record and may have lost some: the longest log "
        "leads when all of them have reported it; broker 3 is not running)"
    )
    running = assess(cluster(), quorum(0, 0, 0), [TopicDescription(name="o", partitions=(replace(lost, offline=()),))])
    assert running.reasons[0].endswith("have reported it)")

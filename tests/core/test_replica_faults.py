"""Replicas that their brokers cannot use: who leads instead, and which reports count."""

import pytest

from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import PartitionChangeRecord
from headrace.core.controller.replica_faults import FaultyReplica, ReplicaFault
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId
from tests.core.controllers import TestedController
from tests.core.test_recoveries import Cluster

FULL, FAILED, DAMAGED = ReplicaFault


def report(cluster: Cluster, node: int, fault: ReplicaFault, *, leader_epoch: int | None = None, **others: int) -> None:
    topic_id = cluster.controller.image.topics["orders"].topic_id
    epoch = cluster.state.leader_epoch if leader_epoch is None else leader_epoch
    faulty = FaultyReplica(topic_id, others.get("partition", 0), epoch, fault)
    broker_epoch = others.get("broker_epoch", cluster.epochs[node])
    cluster.controller.carry_out(cluster.controller.exclude_faulty(NodeId(node), broker_epoch, [faulty]))


def shown(state: PartitionState) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    return state.leader, state.isr, state.elr, state.leader_epoch


@pytest.mark.parametrize("fault", ReplicaFault)
def test_a_leader_with_a_fault_gives_up_the_leadership_and_is_not_in_sync(fault: ReplicaFault) -> None:
    cluster = Cluster()
    report(cluster, 1, fault)
    assert shown(cluster.state) == (2, (2, 3), (), 1)


def test_a_follower_with_a_fault_leaves_the_in_sync_set() -> None:
    cluster = Cluster()
    report(cluster, 3, FULL)
    assert shown(cluster.state) == (1, (1, 2), (), 0)


@pytest.mark.parametrize("fault", [FAILED, DAMAGED])
def test_a_follower_that_may_be_cut_begins_a_new_epoch_in_which_no_earlier_fetch_counts(fault: ReplicaFault) -> None:
    cluster = Cluster()
    report(cluster, 3, fault)
    assert shown(cluster.state) == (1, (1, 2), (), 1)
    report(cluster, 3, fault)
    assert shown(cluster.state) == (1, (1, 2), (), 2), "it was out already, and will be cut"


def test_a_repeated_report_counts_once() -> None:
    cluster = Cluster()
    report(cluster, 1, DAMAGED)
    decided = cluster.state
    report(cluster, 1, DAMAGED, leader_epoch=0)
    assert cluster.state == decided


def test_a_full_replica_stays_eligible_and_a_damaged_one_does_not() -> None:
    cluster = Cluster()
    cluster.kill(3)
    report(cluster, 1, FULL)
    assert shown(cluster.state) == (2, (2,), (1,), 1)
    report(cluster, 1, DAMAGED)
    assert shown(cluster.state) == (2, (2,), (), 2)
    assert cluster.state.last_known_elr == (1,)


def test_full_replicas_do_not_pass_the_leadership_around() -> None:
    cluster = Cluster()
    for node in (1, 2, 3):
        report(cluster, node, FULL)
    assert shown(cluster.state)[:2] == (3, (3,))
    for node in (3, 1, 2, 3):
        report(cluster, node, FULL)
    assert shown(cluster.state)[:2] == (3, (3,))


@pytest.mark.parametrize("fault", ReplicaFault)
def test_the_only_replica_with_every_record_keeps_its_place(fault: ReplicaFault) -> None:
    cluster = Cluster(replicas=(1,))
    report(cluster, 1, fault)
    assert shown(cluster.state) == (1, (1,), (), 0)


def test_a_damaged_leader_continues_while_the_eligible_one_is_away_and_a_failed_one_does_not() -> None:
    cluster = Cluster()
    cluster.kill(2, 3)
    assert shown(cluster.state) == (1, (1,), (3,), 0)
    report(cluster, 1, DAMAGED)
    assert shown(cluster.state) == (1, (1,), (3,), 0)
    report(cluster, 1, FAILED)
    assert shown(cluster.state) == (NO_NODE, (), (3,), 1)
    cluster.restart(3, reboot=False)
    cluster.serve(3)
    assert cluster.state.leader == 3


def test_reports_that_do_not_fit_are_ignored() -> None:
    cluster = Cluster(replicas=(1, 2))
    before = cluster.state
    report(cluster, 3, DAMAGED)
    report(cluster, 1, DAMAGED, partition=1)
    report(cluster, 1, DAMAGED, leader_epoch=9)
    assert cluster.state == before


def test_a_report_of_an_earlier_process_is_refused() -> None:
    controller: TestedController = Cluster().controller
    decision = controller.exclude_faulty(NodeId(1), 77, [])
    assert decision.response.error == ErrorCode.STALE_BROKER_EPOCH


def test_a_partition_that_is_listed_twice_is_changed_once() -> None:
    cluster = Cluster()
    faulty = FaultyReplica(cluster.controller.image.topics["orders"].topic_id, 0, 0, DAMAGED)
    decision = cluster.controller.exclude_faulty(NodeId(1), cluster.epochs[1], [faulty, faulty])
    (record,) = decision.records
    assert isinstance(record, PartitionChangeRecord)

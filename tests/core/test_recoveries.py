"""Partitions of which no replica is known to have every record: who reports, and who leads in the end."""

from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import FeatureLevelRecord
from headrace.core.controller.recoveries import LogEnd, LogEndReports, needs_recovery
from headrace.model.ids import NO_NODE, NodeId
from tests.core.controllers import TestedController

NODES = (1, 2, 3)


class Cluster:
    """Three brokers and a topic on all of them; a reboot of a machine changes its boot id."""

    def __init__(self, replicas: tuple[int, ...] = NODES) -> None:
        self.controller = TestedController()
        self.epochs: dict[int, int] = {}
        self.boots = dict.fromkeys(NODES, 1)
        for node in NODES:
            self.epochs[node] = self.controller.start_broker(node, boot_id=f"{node}.1")
        self.controller.create_one("orders", -1, assignments=[(0, [NodeId(node) for node in replicas])])
        self.reports = LogEndReports()

    @property
    def state(self) -> PartitionState:
        return self.controller.image.topics["orders"].partitions[0]

    def kill(self, *nodes: int) -> None:
        for node in nodes:
            self.controller.carry_out(self.controller.fence_broker(NodeId(node), self.epochs[node]))

    def restart(self, *nodes: int, reboot: bool = True, **others: object) -> None:
        for node in nodes:
            self.boots[node] += reboot
            fields = {"boot_id": f"{node}.{self.boots[node]}", "incarnation": bytes([len(self.controller.log)]) * 16}
            self.epochs[node] = self.controller.register(node, **fields | others).broker_epoch

    def serve(self, *nodes: int) -> None:
        for node in nodes:
            self.controller.beat(node, self.epochs[node])

    def report(self, node: int, leader_epoch: int, end_offset: int, *, epoch: int | None = None) -> tuple[str, ...]:
        image = self.controller.image
        end = LogEnd(image.topics["orders"].topic_id, 0, leader_epoch, end_offset)
        broker_epoch = self.epochs[node] if epoch is None else epoch
        self.reports.add(image, NodeId(node), broker_epoch, [end])
        return self.controller.carry_out(self.controller.recover(self.reports))


def shown(state: PartitionState) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return state.leader, state.isr, state.elr, state.last_known_elr


def test_processes_that_die_together_keep_their_places() -> None:
    cluster = Cluster()
    cluster.kill(1, 2, 3)
    assert shown(cluster.state) == (NO_NODE, (3,), (2,), ())
    cluster.restart(1, 2, 3, reboot=False)
    assert shown(cluster.state) == (NO_NODE, (3,), (2,), ())
    cluster.serve(1, 2)
    assert shown(cluster.state) == (2, (2,), (3,), ())


def test_machines_that_restart_together_elect_the_longest_log() -> None:
    cluster = Cluster()
    cluster.kill(1, 2, 3)
    cluster.restart(1, 2, 3)
    assert shown(cluster.state) == (NO_NODE, (), (), (2, 3))
    assert needs_recovery(cluster.state)
    cluster.serve(1, 2)
    assert cluster.report(1, 9, 900) == ()  # it did not have every record before, and is not asked
    assert cluster.report(2, 3, 50) == ()
    assert cluster.state.leader == NO_NODE
    cluster.serve(3)
    (note,) = cluster.report(3, 3, 60)
    assert shown(cluster.state) == (3, (3,), (), ())
    assert "broker 3 leads, because its log ends at offset 60 of leader epoch 3" in note
    assert cluster.report(2, 3, 70) == ()  # too late
    assert cluster.state.leader == 3


def test_a_higher_epoch_counts_more_than_a_longer_log() -> None:
    cluster = Cluster()
    cluster.kill(1, 2, 3)
    cluster.restart(1, 2, 3)
    cluster.serve(2, 3)
    cluster.report(3, 3, 60)
    cluster.report(2, 4, 50)
    assert cluster.state.leader == 2


def test_a_report_of_an_earlier_process_does_not_count() -> None:
    cluster = Cluster()
    cluster.kill(1, 2, 3)
    cluster.restart(1, 2, 3)
    cluster.serve(2, 3)
    cluster.report(2, 3, 50)
    cluster.restart(2)
    cluster.serve(2)
    cluster.report(3, 3, 60)
    assert cluster.state.leader == NO_NODE
    cluster.report(2, 3, 40)
    assert cluster.state.leader == 3


def test_a_clean_stop_survives_the_restart_of_its_machine() -> None:
    cluster = Cluster()
    cluster.kill(1, 2, 3)
    cluster.restart(3, closed_cleanly=True)
    assert shown(cluster.state) == (NO_NODE, (3,), (2,), ())


def test_another_directory_holds_none_of_the_records() -> None:
    cluster = Cluster()
    cluster.restart(2, reboot=False, metadata_directory=b"n" * 16)
    cluster.kill(3)
    assert shown(cluster.state) == (1, (1,), (3,), ())
    cluster.kill(1)
    cluster.restart(3, reboot=False, closed_cleanly=True, directories=[b"d" * 16])
    assert shown(cluster.state) == (NO_NODE, (1,), (3,), ())
    cluster.restart(3, reboot=False, closed_cleanly=True, directories=[b"e" * 16])
    assert shown(cluster.state) == (NO_NODE, (1,), (), (3,))


def test_a_boot_that_cannot_be_read_counts_as_a_restart_of_the_machine() -> None:
    cluster = Cluster()
    cluster.kill(1, 2)
    assert shown(cluster.state) == (3, (3,), (2,), ())
    cluster.restart(2, boot_id="")
    assert shown(cluster.state) == (3, (3,), (), (2,))


def test_the_only_replica_of_a_partition_leads_after_any_restart() -> None:
    cluster = Cluster(replicas=(2,))
    cluster.restart(2)
    cluster.serve(2)
    assert shown(cluster.state) == (2, (2,), (), ())


def test_a_cluster_at_an_earlier_level_registers_as_before() -> None:
    cluster = Cluster(replicas=(2,))
    cluster.controller.apply(FeatureLevelRecord("metadata.version", 25))
    cluster.restart(2)
    assert cluster.controller.image.brokers[NodeId(2)].boot_id == ""
    cluster.serve(2)
    assert shown(cluster.state) == (2, (2,), (), ())


def test_reports_about_other_partitions_are_ignored() -> None:
    cluster = Cluster()
    assert cluster.report(1, 0, 10) == ()
    image = cluster.controller.image
    topic_id = image.topics["orders"].topic_id
    unknown = [LogEnd(topic_id, 1, 0, 0), LogEnd(topic_id, -1, 0, 0), LogEnd(type(topic_id)(b"x" * 16), 0, 0, 0)]
    cluster.reports.add(image, NodeId(1), cluster.epochs[1], unknown)
    assert cluster.controller.recover(cluster.reports).records == ()
    assert cluster.state.leader == 1

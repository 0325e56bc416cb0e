"""Impaired brokers: when they count as such, what they lead, and what is placed on them."""

import pytest

from headrace.core.controller.health import (
    APPEND_MS_MAX,
    IMPAIRED_AFTER_MS,
    SOUND,
    SOUND_AFTER_MS,
    SYNC_MS_MAX,
    TURN_MS_MAX,
    BrokerHealths,
    HealthReport,
)
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_changes import Election
from headrace.core.controller.records import FeatureLevelRecord
from headrace.core.controller.sessions import BrokerSession
from headrace.model.ids import NodeId
from tests.core.test_recoveries import Cluster

SESSION = BrokerSession(NodeId(1), 7)
BEAT_MS = 1_000
GOOD = SOUND
BAD = HealthReport(turn_ms=TURN_MS_MAX + 1)
BETWEEN = HealthReport(turn_ms=TURN_MS_MAX)


def decisions(*reports: HealthReport, is_impaired: bool = False) -> list[bool | None]:
    healths = BrokerHealths()
    return [
        healths.heard(SESSION, report, is_impaired=is_impaired, now_ms=number * BEAT_MS)
        for number, report in enumerate(reports)
    ]


@pytest.mark.parametrize(
    "report",
    [BAD, HealthReport(append_ms=APPEND_MS_MAX + 1), HealthReport(is_full=True), HealthReport(sync_ms=SYNC_MS_MAX + 1)],
)
def test_a_broker_is_impaired_when_every_report_was_bad_for_a_while(report: HealthReport) -> None:
    beats = IMPAIRED_AFTER_MS // BEAT_MS
    assert decisions(*[report] * (beats + 1)) == [None] * beats + [True]
    assert decisions(*[report] * beats, GOOD, *[report] * beats) == [None] * (2 * beats + 1)


def test_a_broker_is_sound_again_when_every_report_was_good_for_longer() -> None:
    beats = SOUND_AFTER_MS // BEAT_MS
    assert SOUND_AFTER_MS > IMPAIRED_AFTER_MS
    assert decisions(*[GOOD] * (beats + 1), is_impaired=True) == [None] * beats + [False]
    assert decisions(*[GOOD] * beats, BETWEEN, *[GOOD] * beats, is_impaired=True) == [None] * (2 * beats + 1)
    assert not BETWEEN.is_bad, "and it would not have been impaired by this"


def test_another_process_of_the_node_is_judged_by_its_own_reports() -> None:
    healths = BrokerHealths()
    healths.heard(SESSION, BAD, is_impaired=False, now_ms=0)
    assert healths.heard(BrokerSession(NodeId(1), 8), BAD, is_impaired=False, now_ms=IMPAIRED_AFTER_MS) is None


def test_a_report_says_what_is_bad() -> None:
    assert HealthReport(1_500, 2_000, True, 9_000).text == (
        "its directories are full and a turn of its loop took 1500 ms and the writes of a turn took 2000 ms "
        "and a sync takes 9000 ms"
    )


def impair(cluster: Cluster, node: int, *, impaired: bool = True) -> bool:
    decision = cluster.controller.set_impaired(NodeId(node), cluster.epochs[node], impaired=impaired)
    return cluster.controller.carry_out(decision)


def test_others_lead_the_partitions_of_an_impaired_broker_which_stays_in_sync() -> None:
    cluster = Cluster()
    assert impair(cluster, 1)
    assert (cluster.state.leader, cluster.state.isr, cluster.state.leader_epoch) == (2, (1, 2, 3), 1)
    assert not impair(cluster, 1), "it is already"


def test_it_does_not_get_the_leadership_back_before_it_is_sound() -> None:
    cluster = Cluster()
    impair(cluster, 1)
    cluster.controller.carry_out(cluster.controller.balance_leaders(["orders"]))
    assert cluster.state.leader == 2
    assert impair(cluster, 1, impaired=False)
    cluster.controller.carry_out(cluster.controller.balance_leaders(["orders"]))
    assert cluster.state.leader == 1


def test_an_impaired_broker_leads_what_no_other_can() -> None:
    cluster = Cluster()
    cluster.kill(3)
    impair(cluster, 1)
    assert cluster.state.leader == 2
    cluster.kill(2)
    assert (cluster.state.leader, cluster.state.isr) == (1, (1,))
    alone = Cluster(replicas=(1,))
    impair(alone, 1)
    assert (alone.state.leader, alone.state.leader_epoch) == (1, 0)


def test_at_most_half_of_the_brokers_are_impaired() -> None:
    cluster = Cluster()
    assert impair(cluster, 1)
    assert not impair(cluster, 2)
    assert cluster.state.leader == 2


def test_new_partitions_are_led_by_others() -> None:
    cluster = Cluster()
    impair(cluster, 2)
    cluster.controller.create_one("more", 4, replication_factor=2)
    leaders = {state.leader for state in cluster.controller.image.topics["more"].partitions}
    assert leaders == {1, 3}
    replicas = {node for state in cluster.controller.image.topics["more"].partitions for node in state.replicas}
    assert replicas == {1, 3}


def test_a_registration_ends_it_and_snapshots_keep_it() -> None:
    cluster = Cluster()
    impair(cluster, 1)
    image = MetadataImage()
    for record in cluster.controller.image.snapshot_records():
        image.apply(record)
    assert image.brokers[NodeId(1)].impaired
    cluster.restart(1)
    assert not cluster.controller.image.brokers[NodeId(1)].impaired


def test_an_operator_may_not_prefer_it_either() -> None:
    cluster = Cluster()
    impair(cluster, 1)
    results = cluster.controller.carry_out(cluster.controller.elect_leaders(Election.PREFERRED, [("orders", [0])]))
    assert "impaired" in (results[0].message or "")


def test_clusters_at_an_earlier_level_write_nothing() -> None:
    cluster = Cluster(replicas=(2,))
    cluster.controller.apply(FeatureLevelRecord("metadata.version", 25))
    assert not impair(cluster, 2)

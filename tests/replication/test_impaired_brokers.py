"""A broker that runs but is slow reports it in its heartbeats: others lead its partitions until it is sound again."""

from headrace.broker.cluster.broker_lifecycle import HEARTBEAT_VERSION
from headrace.broker.cluster.registration_messages import heartbeat, heartbeat_request
from headrace.core.controller.commands import BrokerHeartbeat
from headrace.core.controller.health import APPEND_MS_MAX, IMPAIRED_AFTER_MS, SOUND_AFTER_MS, HealthReport
from headrace.core.replication.leader import Leader
from headrace.model.ids import NodeId
from headrace.wire.messages import broker_heartbeat
from tests.replication.trios import TOPIC, Trio

BEAT_MS = 1_000


def pass_beats(trio, duration_ms, *, slow=None):
    """Let heartbeats pass; the writes of one broker are slow meanwhile."""
    for _ in range(duration_ms // BEAT_MS):
        if slow is not None:
            trio.nodes[slow].node.metrics.peak_append_ms = APPEND_MS_MAX + 1
        trio.peers.pass_time(BEAT_MS)


def registered(trio, number):
    return trio.controller.image.brokers[number]


def test_others_lead_while_a_broker_is_slow_and_it_returns_when_it_is_not():
    trio = Trio(settings={"leader.imbalance.check.interval.seconds": "10"})
    pass_beats(trio, IMPAIRED_AFTER_MS // 2, slow=2)
    assert isinstance(trio.role(2), Leader), "a slow moment is no reason"
    pass_beats(trio, 2 * IMPAIRED_AFTER_MS, slow=2)
    assert registered(trio, 2).impaired
    trio.run_until(lambda: isinstance(trio.role(1), Leader))
    assert set(trio.role(1).isr) == {1, 2, 3}
    assert trio.nodes[1].said("broker 2 is impaired, and others lead its partitions")
    end = trio.append_at(1, b"a")
    trio.run_until(lambda: trio.role(2).high_watermark == end)
    pass_beats(trio, 2 * SOUND_AFTER_MS)
    assert not registered(trio, 2).impaired
    trio.run_until(lambda: isinstance(trio.role(2), Leader))
    assert trio.controller.image.topics[TOPIC].partitions[0].isr == (2, 1, 3)


def test_a_write_and_a_turn_are_measured():
    trio = Trio()
    clock, write = trio.peers.world.time, trio.replica(2).log.write_staged

    def slow_write():
        clock.advance(APPEND_MS_MAX + 5)
        write()

    trio.replica(2).log.write_staged = slow_write
    metrics = trio.nodes[2].node.metrics
    metrics.take_peaks()
    end = trio.append(b"a")
    trio.run_until(lambda: trio.replica(2).log.end_offset == end)
    turn_ms, append_ms = metrics.take_peaks()
    assert turn_ms >= append_ms > APPEND_MS_MAX
    assert metrics.take_peaks()[1] < APPEND_MS_MAX


def test_a_heartbeat_carries_every_figure():
    health = HealthReport(turn_ms=1, append_ms=2, is_full=True, sync_ms=3)
    beat = BrokerHeartbeat(node_id=NodeId(1), broker_epoch=5, metadata_offset=7, wants_shut_down=True, health=health)
    encoded = broker_heartbeat.encode_request(heartbeat_request(beat), HEARTBEAT_VERSION)
    assert heartbeat(broker_heartbeat.decode_request(encoded, 0, len(encoded), HEARTBEAT_VERSION)) == beat

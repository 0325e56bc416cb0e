"""A wall clock that jumps: timestamps and retention follow it, and nothing else does."""

import pytest

from headrace.log import names
from headrace.model.errors import ErrorCode as E
from tests.disks.virtual_disks import DiskBroker, Sequenced

SECOND_MS, HOUR_MS, DAY_MS, YEAR_MS = 1_000, 3_600_000, 86_400_000, 365 * 86_400_000
JUMPS_MS = [-YEAR_MS, -HOUR_MS, HOUR_MS, YEAR_MS]


def jump(broker, by_ms):
    broker.machine.clock.jump_wall(by_ms)


@pytest.mark.parametrize("by_ms", JUMPS_MS)
def test_waits_are_not_shortened_or_lengthened(by_ms):
    broker = DiskBroker().with_topic("t", flush_messages=1)
    client, reader = broker.client(), broker.client()
    broker.hold_syncs()
    ack = client.send_produce("t", timeout_ms=30_000)
    news = reader.send_fetch(("t", 0, 0), wait_ms=20_000)
    broker.steps()
    jump(broker, by_ms)
    broker.steps()
    assert not client.has_answer(ack)
    assert not reader.has_answer(news)
    broker.pass_time(20_100)
    assert reader.wait(news).responses[0].partitions[0].error_code == 0
    assert not client.has_answer(ack)
    broker.pass_time(10_000)
    assert client.wait(ack).responses[0].partition_responses[0].error_code == E.REQUEST_TIMED_OUT
    broker.release_syncs()


@pytest.mark.parametrize("by_ms", JUMPS_MS)
def test_flushes_and_checkpoints_continue(by_ms):
    settings = {"log.flush.offset.checkpoint.interval.ms": "1000"}
    broker = DiskBroker(settings=settings).with_topic("t", flush_ms=1000)
    client = broker.client()
    assert client.produce_error("t") == 0
    broker.steps(5)
    jump(broker, by_ms)
    assert client.produce_error("t") == 0
    for _ in range(4):
        broker.pass_time(SECOND_MS)
    assert broker.partition("t").log.recovery_point == 2
    assert broker.directories[0].recovery_points[broker.partition("t").log.topic_partition] == 2


@pytest.mark.parametrize("by_ms", JUMPS_MS)
def test_idempotent_producers_survive_jumps_and_kills(by_ms):
    broker = DiskBroker(settings={"log.retention.check.interval.ms": "1000", "log.retention.ms": "-1"})
    broker.with_topic("t", retention_ms=-1)
    producer = Sequenced(broker, "t")
    for number in range(12):
        assert producer.send()
        if number % 3 == 2:
            jump(broker, by_ms if number % 2 else -by_ms // 2)
            assert producer.send()
            for _ in range(3):
                broker.pass_time(SECOND_MS)
        if number == 7:
            broker.machine.kill()
            broker.boot()
            producer._client = broker.client()
    assert broker.client().read_all("t") == producer.acked


@pytest.mark.parametrize("ends", ["kill", "stop"])
@pytest.mark.parametrize("restart_at", ["never", "before", "after"])
def test_a_silent_producer_is_remembered_after_a_jump_ahead(restart_at, ends):
    """Its batch comes again after 8 days by the wall clock, and is not written twice."""
    broker = DiskBroker(settings={"log.retention.check.interval.ms": "1000"}).with_topic("t", retention_ms=-1)
    again = broker.machine.kill if ends == "kill" else broker.stop
    content = broker.client().batch(b"once", producer_id=9, producer_epoch=0, base_sequence=0)
    assert broker.client().produce("t", 0, content).base_offset == 0
    broker.pass_time(SECOND_MS)
    for moment in ("before", "after"):
        if restart_at == moment:
            again()
            broker.boot()
        if moment == "before":
            jump(broker, 8 * DAY_MS)
        for _ in range(4):
            broker.pass_time(SECOND_MS)
    assert broker.client().produce("t", 0, content).base_offset == 0
    assert broker.client().read_all("t") == [b"once"]


@pytest.mark.parametrize("ends", ["kill", "stop"])
def test_downtime_counts_zero_and_uptime_adds_up(ends):
    broker = DiskBroker(settings={"log.retention.check.interval.ms": "1000"}).with_topic("t", retention_ms=-1)
    client = broker.client()
    content = client.batch(b"once", producer_id=9, producer_epoch=0, base_sequence=0)
    assert client.produce("t", 0, content).base_offset == 0
    broker.partition("t").log.roll()  # a snapshot knows the producer from here on
    for _ in range(3):
        for _ in range(20):
            broker.pass_time(HOUR_MS // 4)
        (broker.machine.kill if ends == "kill" else broker.stop)()
        broker.world.time.advance(9 * DAY_MS)
        broker.boot()
    assert len(broker.partition("t").log.producers) == 1, "15 hours of uptime in 27 days"
    for _ in range(44):
        broker.pass_time(HOUR_MS // 4)
    broker.run_until(lambda: len(broker.partition("t").log.producers) == 0)


def test_a_damaged_uptime_checkpoint_keeps_producers_for_longer():
    broker = DiskBroker(settings={"log.retention.check.interval.ms": "1000"}).with_topic("t", retention_ms=-1)
    content = broker.client().batch(b"once", producer_id=9, producer_epoch=0, base_sequence=0)
    for _ in range(20):
        broker.pass_time(HOUR_MS)
    assert broker.client().produce("t", 0, content).base_offset == 0
    broker.stop()
    file = broker.disk.open(f"data/{names.UPTIME}", create=False)
    broker.disk.write_vector(file, [b"uptime.ms=9"], 0)
    broker.disk.close(file)
    jump(broker, 8 * DAY_MS)
    broker.boot()
    for _ in range(20):
        broker.pass_time(HOUR_MS)
    assert broker.client().produce("t", 0, content).base_offset == 0
    assert broker.events("the uptime restarts at zero")


def test_a_producer_of_old_events_is_recognised_when_it_sends_again():
    broker = DiskBroker(settings={"log.retention.check.interval.ms": "1000"}).with_topic("t", retention_ms=-1)
    client = broker.client()
    content = client.batch(b"old", timestamp=client.now() - YEAR_MS, producer_id=9, producer_epoch=0, base_sequence=0)
    assert client.produce("t", 0, content).base_offset == 0
    for _ in range(5):
        broker.pass_time(SECOND_MS)
    assert client.produce("t", 0, content).base_offset == 0
    assert client.read_all("t") == [b"old"]
    broker.pass_time(DAY_MS + SECOND_MS)
    broker.pass_time(SECOND_MS)
    assert len(broker.partition("t").log.producers) == 0, "silence counts from when it was seen"


def test_retention_follows_the_wall_clock_and_deleted_files_leave_after_a_jump_back():
    broker = DiskBroker(settings={"log.retention.check.interval.ms": "1000"})
    broker.with_topic("t", retention_ms=DAY_MS, segment_bytes=1000, file_delete_delay_ms=60_000)
    client = broker.client()
    for _ in range(4):
        assert client.produce_error("t", 0, client.batch(bytes(600))) == 0
    jump(broker, 2 * DAY_MS)
    broker.pass_time(2 * SECOND_MS)
    broker.run_until(lambda: broker.partition("t").log.start_offset == 4)
    folder = broker.partition("t").log.path
    broker.run_until(lambda: any(name.endswith(".deleted") for name in broker.disk.list_directory(folder)))
    jump(broker, -YEAR_MS)
    for _ in range(4):
        broker.pass_time(SECOND_MS)
    assert not any(name.endswith(".deleted") for name in broker.disk.list_directory(folder))
    assert client.produce("t").base_offset == 4

"""The background scrub: rot in closed segments is found, told, counted, and kept from readers."""

import pytest

from headrace.broker.scrub import LOOK_AGAIN_MS, START_DELAY_MS
from headrace.log.errors import DamagedLog
from headrace.log.scrub import DAMAGES_MAX, PIECE_BYTES, SegmentScrub
from headrace.model.errors import ErrorCode as E
from headrace.wire.records.header import HEADER, LENGTH, LOG_OVERHEAD
from tests.disks.virtual_disks import DiskBroker
from tests.log.world import append, batch_of, open_log, virtual_disk

HOUR_MS = 3_600_000
CRC_AT, ATTRIBUTES_AT = 17, 21


def rotting(settings=None):
    """A broker with a topic of several closed segments, three batches in each."""
    broker = DiskBroker(settings={"headrace.scrub.interval.ms": str(HOUR_MS), **(settings or {})})
    broker.with_topic("t", segment_bytes=1300)
    client = broker.client()
    for number in range(14):
        assert client.produce_error("t", 0, client.batch(b"%02d" % number + bytes(300))) == 0
    broker.pass_time(1_000)
    return broker, client


def flip(broker, segment, position, bit=1):
    content = broker.disk._find(segment.log.path).content
    content[position] ^= bit


def batch_positions(broker, segment):
    content = broker.disk._find(segment.log.path).content
    positions, at = [], 0
    while at < segment.size:
        positions.append(at)
        at += HEADER.unpack_from(content, at)[LENGTH] + LOG_OVERHEAD
    return positions


def finish_round(broker):
    goal = broker.node._scrubber.rounds + 1
    for _ in range(200):
        if broker.node._scrubber.rounds >= goal:
            return
        broker.pass_time(LOOK_AGAIN_MS)
    raise AssertionError("the scrub does not come to its end")


def page(broker):
    return b"".join(broker.metrics.render((broker.node._families(),))).decode()


def test_a_whole_log_is_read_again_in_rounds_and_nothing_is_found():
    broker, _ = rotting()
    broker.pass_time(START_DELAY_MS - 2_000)
    assert broker.node._scrubber.bytes_read == 0
    finish_round(broker)
    log = broker.partition("t").log
    once = sum(segment.size for segment in log.segments[:-1])
    assert broker.node._scrubber.bytes_read == once
    finish_round(broker)
    assert broker.node._scrubber.bytes_read == 2 * once
    assert "headrace_scrub_damages_total 0" in page(broker)
    assert len(broker.client().read_all("t")) == 14


def test_a_flipped_bit_is_reported_counted_and_kept_from_readers():
    broker, client = rotting()
    log = broker.partition("t").log
    segment = log.segments[1]
    _, second, third = batch_positions(broker, segment)
    flip(broker, segment, second + 100)
    finish_round(broker)
    assert segment.damaged == ((second, third),)
    assert len(broker.events("a segment is damaged")) == 1
    assert "headrace_scrub_damages_total 1" in page(broker)
    assert "headrace_partitions_damaged 1" in page(broker)
    base = segment.base_offset
    assert client.values("t", 0, base)[:1] == [b"%02d" % base + bytes(300)], "what is before it is read"
    assert client.fetch("t", 0, base + 1).error_code == E.CORRUPT_MESSAGE
    assert client.values("t", 0, base + 2)[:1] == [b"%02d" % (base + 2) + bytes(300)], "and what is behind it"
    assert client.produce_error("t") == 0
    finish_round(broker)
    assert len(broker.events("a segment is damaged:")) == 1, "told once"
    flip(broker, segment, second + 100)
    finish_round(broker)
    assert segment.damaged == ()
    assert "headrace_partitions_damaged 0" in page(broker)
    assert broker.client().fetch("t", 0, base + 1).error_code == 0


@pytest.mark.parametrize(
    ("place", "bit"),
    [(0, 1), (7, 1), (8, 64), (11, 1), (16, 1), (CRC_AT, 1), (ATTRIBUTES_AT, 1), (23, 1), (57, 1), (60, 4), (61, 1)],
)
def test_a_flip_anywhere_in_a_batch_is_found(place, bit):
    """Also where no checksum reaches: its offset, its length and its format. Leader epochs are not looked at."""
    broker, _ = rotting()
    log = broker.partition("t").log
    segment = log.segments[1]
    position = batch_positions(broker, segment)[1]
    flip(broker, segment, position + place, bit)
    finish_round(broker)
    assert segment.damaged
    assert segment.damaged[0][0] == position


def test_a_segment_that_cannot_be_read_is_reported():
    broker, _ = rotting()
    segment = broker.partition("t").log.segments[0]
    broker.disk.faults.fail("read", path_contains=segment.log.path, times=1000)
    finish_round(broker)
    assert broker.events("a segment cannot be read")
    assert "headrace_scrub_damages_total 1" in page(broker)


def test_segments_that_go_away_meanwhile_are_passed_over():
    broker, client = rotting({"headrace.scrub.bytes.per.second": "1024"})
    broker.pass_time(START_DELAY_MS)
    assert broker.node._scrubber.bytes_read
    assert client.delete_topic("t") == 0
    finish_round(broker)
    assert not broker.events("a segment")


def test_the_scrub_is_no_faster_than_configured():
    broker, _ = rotting({"headrace.scrub.bytes.per.second": "1024"})
    began = None
    for _ in range(600):
        broker.world.time.advance(100)
        broker.steps(3)
        scrubber = broker.node._scrubber
        if scrubber.bytes_read and began is None:
            began = (broker.machine.clock.monotonic_ms(), scrubber.bytes_read)
        if scrubber.rounds:
            break
    assert began is not None
    elapsed_ms = broker.machine.clock.monotonic_ms() - began[0]
    assert scrubber.rounds == 1 or elapsed_ms > 10_000
    assert (scrubber.bytes_read - began[1]) <= 1024 * elapsed_ms / 1000 + 1300


def test_the_scrub_can_be_turned_off_and_on():
    broker, client = rotting({"headrace.scrub.interval.ms": "0"})
    for _ in range(5):
        broker.pass_time(LOOK_AGAIN_MS)
    assert broker.node._scrubber.bytes_read == 0
    assert client.alter_configs(4, "", {"headrace.scrub.interval.ms": HOUR_MS}) == 0
    finish_round(broker)
    assert broker.node._scrubber.bytes_read > 0


# One segment


def scrubbed(log, segment, following):
    scrub = SegmentScrub(log.disk, segment, next_base_offset=following.base_offset, gaps=False)
    pieces = 0
    while not scrub.finished:
        scrub.piece().run_inline()
        pieces += 1
    return scrub, pieces


def test_a_large_segment_is_read_in_pieces():
    log = open_log(virtual_disk())
    for _ in range(40):
        append(log, batch_of(bytes(30_000)))
    log.roll()
    scrub, pieces = scrubbed(log, *log.segments)
    assert scrub.damages == []
    assert scrub.bytes_read == log.segments[0].size
    assert 3 < pieces <= log.segments[0].size // PIECE_BYTES + 1


def test_very_many_damages_become_one():
    log = open_log(virtual_disk())
    for number in range(60):
        append(log, batch_of(b"%d" % number + bytes(100)))
    log.roll()
    segment, following = log.segments
    content = log.disk._find(segment.log.path).content
    size = segment.size // 60
    for number in range(1, 60, 2):
        content[number * size + 90] ^= 1
    scrub, _ = scrubbed(log, segment, following)
    assert len(scrub.damages) == DAMAGES_MAX + 1
    assert scrub.damages[-1].end == segment.size
    log.mark_damaged(segment, tuple((damage.position, damage.end) for damage in scrub.damages))
    log.files.close_all()
    assert log.read(2, 1 << 20, log.end_offset, True) is not None
    for offset in (1, 3, 40):
        with pytest.raises(DamagedLog):
            log.read(offset, 1 << 20, log.end_offset, True)


def test_a_segment_that_ends_early_is_damaged_unless_offsets_may_be_missing():
    log = open_log(virtual_disk())
    for number in range(3):
        append(log, batch_of(b"%d" % number))
    log.roll()
    segment, following = log.segments
    segment.size -= segment.size // 3
    (damage,) = scrubbed(log, segment, following)[0].damages
    assert "ends at offset 2, but the next segment begins at 3" in damage.text
    lenient = SegmentScrub(log.disk, segment, next_base_offset=3, gaps=True)
    lenient.piece().run_inline()
    assert lenient.finished
    assert lenient.damages == []

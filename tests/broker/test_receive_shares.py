"""The memory of large frames is shared between addresses, and between the connections of one."""

from headrace.model.limits import (
    FRAME_STALLED_MS,
)
from tests.broker.frame_receivers import Receiving, declared
from tests.broker.transports import ScriptedTransport, connection


def from_host(token, host):
    return connection(ScriptedTransport(token, host=host))


def begun(receiving, sender, size=4 << 20, received=40_000):
    """A large frame of which that much has arrived; 64 KiB, that is."""
    receiving.feed(sender, declared(size) + b"b" * received)
    return sender


def filled(receiving, hosts, count):
    """Stalled frames of these hosts, in turns, that take the whole pool."""
    holders = [begun(receiving, from_host(10 + number, hosts[number % len(hosts)])) for number in range(count)]
    assert receiving.pool.lent_bytes == receiving.pool.lent_bytes_max
    return holders


def test_the_oldest_stalled_frame_is_dropped_first():
    receiving = Receiving(lent_bytes_max=4 << 16)
    holders = filled(receiving, ["10.0.0.1"], 4)
    wanting = connection(ScriptedTransport(2))
    begun(receiving, wanting)
    assert wanting.starved, "no frame has stalled yet"
    receiving.receiver.now_ms += FRAME_STALLED_MS / 2
    receiving.feed(holders[0], b"p" * 20_000)
    receiving.receiver.now_ms += FRAME_STALLED_MS / 2
    assert receiving.receiver.take_starved(at_once=True) == [wanting]
    wanting.starved = False
    assert receiving.receiver.resume(wanting)
    assert wanting.frame is not None
    assert receiving.gave_way == [holders[1]], "the first one goes on arriving"
    receiving.feed(holders[0], b"p" * 20_000)
    assert holders[0].frame is not None


def test_a_frame_that_drips_counts_as_stalled():
    receiving = Receiving(lent_bytes_max=4 << 16)
    holders = filled(receiving, ["10.0.0.1"], 4)
    for _ in range(10):
        receiving.receiver.now_ms += FRAME_STALLED_MS / 10
        for holder in holders:
            receiving.feed(holder, b"d" * 100)
    wanting = begun(receiving, connection(ScriptedTransport(2)))
    assert wanting.frame is not None
    assert receiving.gave_way == [holders[0]]


def test_the_address_that_holds_most_loses_a_frame_first():
    receiving = Receiving(lent_bytes_max=8 << 16)
    holders = filled(receiving, ["10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2"], 8)
    receiving.receiver.now_ms += FRAME_STALLED_MS
    begun(receiving, from_host(2, "10.0.0.3"))
    begun(receiving, from_host(3, "10.0.0.3"))
    assert [sender.peer_host for sender in receiving.gave_way] == ["10.0.0.2"] * 2
    assert receiving.gave_way == holders[1:3]


def test_an_address_above_its_share_loses_a_frame_to_one_that_has_waited():
    receiving = Receiving(lent_bytes_max=8 << 16)
    holders = filled(receiving, ["10.0.0.1"], 8)
    wanting = begun(receiving, from_host(2, "10.0.0.2"))
    assert wanting.starved
    for _ in range(4):
        receiving.receiver.now_ms += FRAME_STALLED_MS / 4
        for holder in holders:
            if holder.frame_received < 60_000:
                holder.frame_progress_ms = receiving.receiver.now_ms  # all of them do arrive
    assert receiving.gave_way == []
    wanting.starved = False
    receiving.receiver.resume(wanting)
    assert wanting.frame is not None
    assert receiving.gave_way == holders[:1]


def test_addresses_that_hold_least_are_next():
    receiving = Receiving(lent_bytes_max=4 << 16)
    filled(receiving, ["10.0.0.1"], 4)
    crowd = [begun(receiving, from_host(100 + number, "10.0.0.1")) for number in range(20)]
    light = begun(receiving, from_host(2, "10.0.0.2"))
    assert receiving.receiver.take_starved(at_once=True)[:2] == [light, crowd[0]]

"""Encode producer states as the bytes of a `.snapshot` file, and decode them.

The format is Kafka's: version, CRC-32C of the rest, a count, and entries of 46 bytes. Kafka stores one entry per
producer, the last batch; Headrace stores every cached batch, oldest first, so that a retry of an earlier batch is still
recognised after a restart. Kafka uses the last entry of a producer, so it can read these files too.

After the entries, where Kafka does not read, follows the time at which each producer was last seen: a count, then for
each producer its id, the wall clock and the uptime of the log directory. Files without this part are accepted.
"""

from struct import Struct

from headrace.wire.checksum import crc32c

from .errors import CorruptFile
from .producers import NEVER_SEEN, FrozenProducers, ProducerStates
from .uptime import DirectoryUptime

VERSION = 1
NO_TRANSACTION = -1
SNAPSHOT_BYTES_MAX = 1 << 30

_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_SEEN = Struct(">qqq")


def encode(producers: FrozenProducers, *, below: int) -> bytes:
    """Encode the states as of offset `below`, in a helper thread; batches staged after it are left to the replay."""
    entries: list[bytes] = []
    seen: list[bytes] = []
    for producer_id, state in producers.items():
        before = len(entries)
        start = state.transaction_start_offset if state.transaction_start_offset < below else NO_TRANSACTION
        rest = (state.coordinator_epoch, start)
        batches = [batch for batch in state.batches if batch[3] < below]
        for _first, last_sequence, base_offset, last_offset, timestamp in batches:
            delta = last_offset - base_offset
            entries.append(_ENTRY.pack(producer_id, state.epoch, last_sequence, last_offset, delta, timestamp, *rest))
        if not batches and (start >= 0 or not state.batches):
            entries.append(_ENTRY.pack(producer_id, state.epoch, -1, -1, 0, state.last_timestamp, *rest))
        if len(entries) > before:
            seen.append(_SEEN.pack(producer_id, state.seen_ms, state.seen_uptime_ms))
    body = b"".join((_COUNT.pack(len(entries)), *entries, _COUNT.pack(len(seen)), *seen))
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode(content: bytes, *, seen_ms: int = NEVER_SEEN, uptime: DirectoryUptime | None = None) -> ProducerStates:
    """Decode a snapshot. `seen_ms` is the time at which the log is opened: inactivity counts from then if the file has
    no times.
    """
    if len(content) < _HEAD.size + _COUNT.size:
        raise CorruptFile("the producer snapshot is truncated")
    version, crc = _HEAD.unpack_from(content)
    body = memoryview(content)[_HEAD.size :]
    if version != VERSION or crc != crc32c(body):
        raise CorruptFile(
            f"the producer snapshot has format version {version}, which is not supported, or a wrong checksum"
        )
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or len(body) < _COUNT.size + count * _ENTRY.size:
        raise CorruptFile(f"the producer snapshot declares {count} entries in {len(body)} bytes")
    producers = ProducerStates(uptime)
    end = _COUNT.size + count * _ENTRY.size
    for entry in _ENTRY.iter_unpack(body[_COUNT.size : end]):
        _put(producers, entry, seen_ms)
    _take_times(producers, body[end:])
    producers.all_restored()
    return producers


def _take_times(producers: ProducerStates, content: memoryview) -> None:
    if not content:
        return
    if len(content) < _COUNT.size or len(content) != _COUNT.size + _COUNT.unpack_from(content)[0] * _SEEN.size:
        raise CorruptFile(f"the producer snapshot has {len(content)} bytes after its entries that cannot be decoded")
    for producer_id, seen_ms, seen_uptime_ms in _SEEN.iter_unpack(content[_COUNT.size :]):
        producers.restored_times(producer_id, seen_ms=seen_ms, seen_uptime_ms=seen_uptime_ms)


def _put(producers: ProducerStates, entry: tuple[int, ...], seen_ms: int) -> None:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, transaction_start = entry
    state = producers.restored(producer_id, epoch, seen_ms)
    state.last_timestamp = timestamp
    state.coordinator_epoch = coordinator_epoch
    state.transaction_start_offset = transaction_start
    if last_sequence >= 0:
        first_sequence = (last_sequence - delta) & 0x7FFF_FFFF
        state.batches.append((first_sequence, last_sequence, last_offset - delta, last_offset, timestamp))

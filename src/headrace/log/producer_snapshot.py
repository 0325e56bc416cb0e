"""Producer states as the bytes of a `.snapshot` file.

The format is Kafka's: version, CRC-32C of the rest, a count, and entries of 46 bytes. Kafka keeps one entry a
producer, the last batch; here every cached batch has its entry, oldest first, so that a retry of an earlier batch is
still recognised after a restart. Kafka takes the last entry it reads of a producer, so it reads these files as well.

Behind the entries, where Kafka does not look, is when each producer was last seen: a count, then for each its id, the
wall clock and the uptime of the log directory. Files without this part are read too.
"""

from struct import Struct

from headrace.wire.checksum import crc32c

from .errors import CorruptFile
from .producers import NEVER_SEEN, FrozenProducers, ProducerStates
from .uptime import Uptime

VERSION = 1
NO_TRANSACTION = -1
SNAPSHOT_BYTES_MAX = 1 << 30

_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_SEEN = Struct(">qqq")


def encode(producers: FrozenProducers, *, below: int) -> bytes:
    """For a helper. The states as of offset `below`: batches that are staged behind it are left to the replay."""
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


def decode(content: bytes, *, seen_ms: int = NEVER_SEEN, uptime: Uptime | None = None) -> ProducerStates:
    """`seen_ms` is now, for a log that is being opened: silence counts from there where a file tells nothing of it."""
    if len(content) < _HEAD.size + _COUNT.size:
        raise CorruptFile("a producer snapshot is cut off")
    version, crc = _HEAD.unpack_from(content)
    body = memoryview(content)[_HEAD.size :]
    if version != VERSION or crc != crc32c(body):
        raise CorruptFile(f"a producer snapshot of version {version} has a wrong checksum or is of another version")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or len(body) < _COUNT.size + count * _ENTRY.size:
        raise CorruptFile(f"a producer snapshot declares {count} entries in {len(body)} bytes")
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
        raise CorruptFile(f"a producer snapshot has {len(content)} bytes behind its entries that make no sense")
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

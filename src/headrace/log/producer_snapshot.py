"""Producer states as the bytes of a `.snapshot` file.

The format is Kafka's: version, CRC-32C of the rest, a count, and entries of 46 bytes. Kafka keeps one entry a
producer, the last batch; here every cached batch has its entry, oldest first, so that a retry of an earlier batch is
still recognised after a restart. Kafka takes the last entry it reads of a producer, so it reads these files as well.
"""

from struct import Struct

from headrace.wire.checksum import crc32c

from .errors import CorruptFile
from .producers import NEVER_SEEN, FrozenProducers, ProducerStates

VERSION = 1
NO_TRANSACTION = -1
SNAPSHOT_BYTES_MAX = 1 << 30

_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


def encode(producers: FrozenProducers, *, below: int) -> bytes:
    """For a helper. The states as of offset `below`: batches that are staged behind it are left to the replay."""
    entries: list[bytes] = []
    for producer_id, state in producers.items():
        start = state.transaction_start_offset if state.transaction_start_offset < below else NO_TRANSACTION
        rest = (state.coordinator_epoch, start)
        batches = [batch for batch in state.batches if batch[3] < below]
        for _first, last_sequence, base_offset, last_offset, timestamp in batches:
            delta = last_offset - base_offset
            entries.append(_ENTRY.pack(producer_id, state.epoch, last_sequence, last_offset, delta, timestamp, *rest))
        if not batches and (start >= 0 or not state.batches):
            entries.append(_ENTRY.pack(producer_id, state.epoch, -1, -1, 0, state.last_timestamp, *rest))
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode(content: bytes, *, seen_ms: int = NEVER_SEEN) -> ProducerStates:
    """`seen_ms` is now, for a log that is being opened: how long a producer is silent counts from there."""
    if len(content) < _HEAD.size + _COUNT.size:
        raise CorruptFile("a producer snapshot is cut off")
    version, crc = _HEAD.unpack_from(content)
    body = memoryview(content)[_HEAD.size :]
    if version != VERSION or crc != crc32c(body):
        raise CorruptFile(f"a producer snapshot of version {version} has a wrong checksum or is of another version")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or len(body) < _COUNT.size + count * _ENTRY.size:
        raise CorruptFile(f"a producer snapshot declares {count} entries in {len(body)} bytes")
    producers = ProducerStates()
    for entry in _ENTRY.iter_unpack(body[_COUNT.size : _COUNT.size + count * _ENTRY.size]):
        _put(producers, entry, seen_ms)
    producers.all_restored()
    return producers


def _put(producers: ProducerStates, entry: tuple[int, ...], seen_ms: int) -> None:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, transaction_start = entry
    state = producers.restored(producer_id, epoch, seen_ms)
    state.last_timestamp = timestamp
    state.coordinator_epoch = coordinator_epoch
    state.transaction_start_offset = transaction_start
    if last_sequence >= 0:
        first_sequence = (last_sequence - delta) & 0x7FFF_FFFF
        state.batches.append((first_sequence, last_sequence, last_offset - delta, last_offset, timestamp))

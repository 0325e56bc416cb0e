"""Split requests that commit very many offsets into requests of the same API that commit some each.

OffsetCommit and TxnOffsetCommit end with topics and their partitions, so the fields before can be repeated for every
slice. The responses of the slices are joined into one; a topic that was split appears once for each slice.
"""

from struct import Struct

from headrace.wire.apis import ApiKey, is_flexible
from headrace.wire.errors import ProtocolError
from headrace.wire.scan import element_count, skip_tagged_fields, string_span, varint_bytes

_INT32 = Struct(">i")
_UUID_BYTES = 16
_NO_TAGS = b"\0"
_RESPONSE_HEADER_BYTES = 8
"""The size of the frame and the correlation id."""
_THROTTLE_BYTES = 4

SLICED = frozenset((int(ApiKey.OFFSET_COMMIT), int(ApiKey.TXN_OFFSET_COMMIT)))

_STRING = -1
"""Marks a string in a list of fields, beside the sizes of fixed fields."""


def _head_fields(key: int, version: int) -> list[int]:
    if key == ApiKey.TXN_OFFSET_COMMIT:
        return [_STRING, _STRING, 8, 2] + ([4, _STRING, _STRING] if version >= 3 else [])
    fields = [_STRING]
    if version >= 1:
        fields += [4, _STRING]
    if version >= 7:
        fields.append(_STRING)
    if 2 <= version <= 4:
        fields.append(8)
    return fields


def _partition_bytes(key: int, version: int) -> int:
    """Return the bytes of a partition before its metadata: index and offset, a timestamp in version 1, a leader epoch
    later.
    """
    if key == ApiKey.OFFSET_COMMIT and version == 1:
        return 20
    return 16 if version >= (2 if key == ApiKey.TXN_OFFSET_COMMIT else 6) else 12


def _count(count: int, *, compact: bool) -> bytes:
    return varint_bytes(count + 1) if compact else _INT32.pack(count)


class OffsetSlices:
    """The partitions of one request, some at a time. Raises ProtocolError if the bytes are not such a request."""

    def __init__(self, key: int, version: int, body: memoryview, *, whole: bool = True) -> None:
        """With `whole=False` the body is only the beginning of a request."""
        self._body = body
        self._whole = whole
        self._flexible = is_flexible(key, version)
        self._fixed_bytes = _partition_bytes(key, version)
        self._by_id = key == ApiKey.OFFSET_COMMIT and version >= 10
        position = 0
        for size in _head_fields(key, version):
            position = position + size if size != _STRING else self._behind_string(position)
        self._head = bytes(body[:position])
        self._topics_left, self._position = self._elements(position, smallest=3)
        self._topic = b""
        self._partitions_left = 0

    def take(self, partitions_max: int, bytes_max: int) -> bytes | None:
        """Return the body of a request with the next partitions, up to about `bytes_max`; None when there are no
        more.
        """
        topics: list[bytes] = []
        taken, start = 0, self._position
        while taken < partitions_max and (self._topics_left or self._partitions_left):
            if not self._partitions_left:
                self._begin_topic()
            count, partitions = self._take_partitions(partitions_max - taken, start + bytes_max)
            topics.append(partitions)
            taken += count or 1
            if self._position >= start + bytes_max:
                break
        if not topics:
            return None
        tags = _NO_TAGS if self._flexible else b""
        return b"".join((self._head, _count(len(topics), compact=self._flexible), *topics, tags))

    def first_partition(self) -> tuple[str | bytes, int]:
        """Return the first topic, by its name or its id, and its first partition."""
        start = self._position
        self._begin_topic()
        if not self._partitions_left or self._position + _INT32.size > len(self._body):
            raise ProtocolError("no partition in the first bytes of a request")
        (index,) = _INT32.unpack_from(self._body, self._position)
        if self._by_id:
            return self._topic, index
        begin, end = string_span(self._body, start, len(self._body), compact=self._flexible)
        return bytes(self._body[begin:end]).decode(errors="replace"), index

    def _begin_topic(self) -> None:
        start = self._position
        position = start + _UUID_BYTES if self._by_id else self._behind_string(start)
        self._topic = bytes(self._body[start:position])
        self._topics_left -= 1
        smallest = self._fixed_bytes + (1 if self._flexible else 2)
        self._partitions_left, self._position = self._elements(position, smallest)

    def _take_partitions(self, count_max: int, end_wanted: int) -> tuple[int, bytes]:
        """Return some partitions of the topic and their number: at least one if there is one, none after
        `end_wanted`.
        """
        body, flexible, fixed_bytes, end = self._body, self._flexible, self._fixed_bytes, len(self._body)
        start = position = self._position
        count, count_max = 0, min(self._partitions_left, count_max)
        while count < count_max and (not count or position < end_wanted):
            position = string_span(body, position + fixed_bytes, end, compact=flexible)[1]
            if flexible:
                position = skip_tagged_fields(body, position, end)
            count += 1
        partitions = body[start:position]
        self._partitions_left -= count
        if not self._partitions_left and flexible:
            position = skip_tagged_fields(body, position, end)
        self._position = position
        tags = _NO_TAGS if flexible else b""
        return count, b"".join((self._topic, _count(count, compact=flexible), partitions, tags))

    def _elements(self, position: int, smallest: int) -> tuple[int, int]:
        smallest = smallest if self._whole else 0
        return element_count(self._body, position, len(self._body), compact=self._flexible, smallest=smallest)

    def _behind_string(self, position: int) -> int:
        return string_span(self._body, position, len(self._body), compact=self._flexible)[1]


class OffsetResponses:
    """The responses of all slices as one."""

    def __init__(self, key: int, version: int) -> None:
        self._flexible = is_flexible(key, version)
        self._throttle_bytes = _THROTTLE_BYTES if key == ApiKey.TXN_OFFSET_COMMIT or version >= 3 else 0
        self._topics: list[bytes] = []
        self._count = 0

    def add(self, frame: bytes) -> None:
        """Add the topics of the response to one slice."""
        tag_bytes = len(_NO_TAGS) if self._flexible else 0
        position = _RESPONSE_HEADER_BYTES + tag_bytes + self._throttle_bytes
        count, position = element_count(memoryview(frame), position, len(frame), compact=self._flexible, smallest=1)
        self._count += count
        self._topics.append(frame[position : len(frame) - tag_bytes])

    def body(self) -> bytes:
        tags = _NO_TAGS if self._flexible else b""
        return b"".join((bytes(self._throttle_bytes), _count(self._count, compact=self._flexible), *self._topics, tags))

"""Partition states of one topic, packed as integers so that a million partitions fit into tens of megabytes.

Each partition is a row of six 32-bit integers: leader, leader epoch, partition epoch, and three numbers that stand for
the replicas, the in-sync replicas and the log directories. The lists behind these numbers are in a `ListTable`, which
all topics of an image share: brokers are few, so that most partitions repeat the lists of others.
"""

import sys
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar, overload

from headrace.core.controller.records import RecordError, TopicPartitionsRecord
from headrace.model.ids import NO_NODE, LeaderEpoch, NodeId, TopicId

ROW_FIELDS = 6
_LEADER, _LEADER_EPOCH, _PARTITION_EPOCH, _REPLICAS, _ISR, _DIRECTORIES = range(ROW_FIELDS)
_INTEGER = "i"
_ROW_BYTES = ROW_FIELDS * array(_INTEGER).itemsize
PARTITIONS_PER_RECORD_MAX = 4_096
"""Partitions of one snapshot record: decoding it takes about a millisecond."""
LIST_ITEMS_PER_RECORD_MAX = 40_000
"""Brokers and directories in the lists of one snapshot record, which take up to 20 bytes each: a record that is larger
than RECORD_BYTES_MAX could not be read again."""

Item = TypeVar("Item", NodeId, bytes)


class PartitionState(NamedTuple):
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    """NO_NODE while no in-sync replica is on an unfenced broker."""
    leader_epoch: LeaderEpoch
    partition_epoch: int
    directories: tuple[bytes, ...]


class ListTable(Generic[Item]):
    """Numbers for tuples. It only grows, so that an image and its copies can share it.

    Its size is the number of different tuples since the image was loaded, not the number of partitions.
    """

    __slots__ = ("_numbers", "tuples")

    def __init__(self) -> None:
        self.tuples: list[tuple[Item, ...]] = []
        self._numbers: dict[tuple[Item, ...], int] = {}

    def number_of(self, items: tuple[Item, ...]) -> int:
        number = self._numbers.get(items)
        if number is None:
            number = self._numbers[items] = len(self.tuples)
            self.tuples.append(items)
        return number


class Tables:
    """The lists that the partition states of one image refer to."""

    __slots__ = ("directories", "nodes")

    def __init__(self) -> None:
        self.nodes: ListTable[NodeId] = ListTable()
        self.directories: ListTable[bytes] = ListTable()


class PartitionStates(Sequence[PartitionState]):
    """The states of a topic's partitions, by partition number."""

    __slots__ = ("_rows", "_tables")

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows = array(_INTEGER)

    def __len__(self) -> int:
        return len(self._rows) // ROW_FIELDS

    @overload
    def __getitem__(self, index: int) -> PartitionState: ...
    @overload
    def __getitem__(self, index: slice) -> list[PartitionState]: ...
    def __getitem__(self, index: int | slice) -> PartitionState | list[PartitionState]:
        if isinstance(index, slice):
            return [self._state(number) for number in range(*index.indices(len(self)))]
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"partition {index} of a topic with {count}")
        return self._state(index % count)

    def __iter__(self) -> Iterator[PartitionState]:
        return map(self._state, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def led_by(self, node_id: NodeId) -> list[int]:
        """Return the partitions that this broker leads, in order."""
        leaders = self._rows[_LEADER::ROW_FIELDS]
        wanted = array(_INTEGER, (node_id,)).tobytes()
        size = leaders.itemsize
        content = leaders.tobytes()  # searching bytes is many times faster than comparing integers
        found: list[int] = []
        at = content.find(wanted)
        while at >= 0:
            index, remainder = divmod(at, size)
            if remainder:  # the end of one number and the start of the next
                at = content.find(wanted, at + 1)
            else:
                found.append(index)
                at = content.find(wanted, at + size)
        return found

    def held_by(self, node_id: NodeId) -> list[int]:
        """Return the partitions of which this broker is a replica, in order."""
        replicas = self._rows[_REPLICAS::ROW_FIELDS]
        nodes = self._tables.nodes.tuples
        holding = {number for number in dict.fromkeys(replicas) if node_id in nodes[number]}
        return [index for index, number in enumerate(replicas) if number in holding] if holding else []

    def leaderless_on(self, node_id: NodeId) -> list[int]:
        """Return the partitions without a leader in whose in-sync set this broker is, in order."""
        in_sync = self._rows[_ISR::ROW_FIELDS]
        nodes = self._tables.nodes.tuples
        holding = {number for number in dict.fromkeys(in_sync) if node_id in nodes[number]}
        return [index for index in self.led_by(NO_NODE) if in_sync[index] in holding] if holding else []

    def leaderless_nodes(self, first: int) -> Iterator[NodeId]:
        """Iterate over the in-sync brokers of the partitions without a leader, from `first` on."""
        leaders = self._rows[first * ROW_FIELDS + _LEADER :: ROW_FIELDS]
        in_sync = self._rows[first * ROW_FIELDS + _ISR :: ROW_FIELDS]
        numbers = dict.fromkeys(number for leader, number in zip(leaders, in_sync, strict=True) if leader == NO_NODE)
        nodes = self._tables.nodes.tuples
        return iter(dict.fromkeys(node for number in numbers for node in nodes[number]))

    def preferred_leaders(self, first: int = 0) -> Counter[NodeId]:
        """Count the partitions from `first` on by the first of their replicas."""
        nodes = self._tables.nodes.tuples
        numbers = Counter(self._rows[first * ROW_FIELDS + _REPLICAS :: ROW_FIELDS])
        counts: Counter[NodeId] = Counter()
        for number, count in numbers.items():
            counts.update(dict.fromkeys(nodes[number][:1], count))
        return counts

    def append(self, state: PartitionState) -> None:
        self._rows.extend(self._row(state))

    def replace(self, index: int, state: PartitionState) -> None:
        self._rows[index * ROW_FIELDS : (index + 1) * ROW_FIELDS] = self._row(state)

    def copy(self) -> "PartitionStates":
        twin = PartitionStates(self._tables)
        twin._rows = self._rows[:]
        return twin

    def _state(self, index: int) -> PartitionState:
        at = index * ROW_FIELDS
        leader, leader_epoch, partition_epoch, replicas, isr, directories = self._rows[at : at + ROW_FIELDS]
        nodes = self._tables.nodes.tuples
        return PartitionState(
            nodes[replicas],
            nodes[isr],
            NodeId(leader),
            LeaderEpoch(leader_epoch),
            partition_epoch,
            self._tables.directories.tuples[directories],
        )

    def _row(self, state: PartitionState) -> "array[int]":
        nodes = self._tables.nodes
        try:
            return array(
                _INTEGER,
                (
                    state.leader,
                    state.leader_epoch,
                    state.partition_epoch,
                    nodes.number_of(state.replicas),
                    nodes.number_of(state.isr),
                    self._tables.directories.number_of(state.directories),
                ),
            )
        except OverflowError:
            raise RecordError(
                f"leader {state.leader}, leader epoch {state.leader_epoch} or partition epoch "
                f"{state.partition_epoch} does not fit into 32 bits"
            ) from None

    # Snapshots

    def snapshot_records(self, topic_id: TopicId) -> Iterator[TopicPartitionsRecord]:
        """Pack all partitions into records, each with the lists that it refers to."""
        for first in range(0, len(self), PARTITIONS_PER_RECORD_MAX):
            yield from self._packed(topic_id, first, min(PARTITIONS_PER_RECORD_MAX, len(self) - first))

    def _packed(self, topic_id: TopicId, first: int, count: int) -> Iterator[TopicPartitionsRecord]:
        """Pack these partitions into one record, or into several if their lists would make it too large."""
        rows = self._rows[first * ROW_FIELDS : (first + count) * ROW_FIELDS]
        nodes = self._tables.nodes.tuples
        directories = self._tables.directories.tuples
        node_lists = tuple(nodes[number] for number in _renumber(rows, _REPLICAS, _ISR))
        directory_lists = tuple(directories[number] for number in _renumber(rows, _DIRECTORIES))
        items = sum(map(len, node_lists)) + sum(map(len, directory_lists))
        if items > LIST_ITEMS_PER_RECORD_MAX and count > 1:
            yield from self._packed(topic_id, first, count // 2)
            yield from self._packed(topic_id, first + count // 2, count - count // 2)
            return
        if sys.byteorder == "big":
            rows.byteswap()
        yield TopicPartitionsRecord(topic_id, first, node_lists, directory_lists, rows.tobytes())

    def load(self, record: TopicPartitionsRecord) -> int:
        """Append the partitions of a snapshot record, and return their number."""
        if record.first != len(self) or not record.rows or len(record.rows) % _ROW_BYTES:
            raise RecordError(
                f"{len(record.rows)} bytes of partitions from number {record.first} on follow {len(self)} partitions"
            )
        rows = array(_INTEGER, record.rows)
        if sys.byteorder == "big":
            rows.byteswap()
        nodes = [self._tables.nodes.number_of(items) for items in record.nodes]
        directories = [self._tables.directories.number_of(items) for items in record.directories]
        _look_up(rows, _REPLICAS, nodes)
        _look_up(rows, _ISR, nodes)
        _look_up(rows, _DIRECTORIES, directories)
        self._rows += rows
        return len(rows) // ROW_FIELDS

    def leaders(self, first: int) -> Iterator[NodeId]:
        """Iterate over the leaders of the partitions from `first` on."""
        return map(NodeId, dict.fromkeys(self._rows[first * ROW_FIELDS + _LEADER :: ROW_FIELDS]))


def _renumber(rows: "array[int]", *fields: int) -> dict[int, int]:
    """Number the lists of these columns in the order in which they appear; return the new numbers by the old."""
    numbers: dict[int, int] = {}
    for field in fields:
        column = rows[field::ROW_FIELDS]
        for number in dict.fromkeys(column):
            numbers.setdefault(number, len(numbers))
        rows[field::ROW_FIELDS] = array(_INTEGER, [numbers[number] for number in column])
    return numbers


def _look_up(rows: "array[int]", field: int, numbers: list[int]) -> None:
    column = rows[field::ROW_FIELDS]
    if not 0 <= min(column) <= max(column) < len(numbers):
        raise RecordError(f"a partition refers to list {max(column)}, its record has {len(numbers)}")
    rows[field::ROW_FIELDS] = array(_INTEGER, [numbers[number] for number in column])

"""Partition states of one topic, packed as integers so that a million partitions fit into tens of megabytes.

Each partition is a row of six 32-bit integers: leader, leader epoch, partition epoch, and three numbers that stand for
the replicas, the in-sync replicas and the log directories. The lists behind these numbers are in a `ListTable`, which
all topics of an image share: brokers are few, so that most partitions repeat the lists of others. A negative number in
the place of the in-sync replicas stands for `PartitionMembers`: few partitions have eligible leaders or are moving.
"""

import sys
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar, overload

from headrace.core.controller.records import PartitionMembers, RecordError, TopicPartitionsRecord
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

FINDS_MAX = 8
"""Numbers that are searched for one by one; for more of them, reading the whole column once is faster."""

Listed = TypeVar("Listed", tuple[NodeId, ...], tuple[bytes, ...], PartitionMembers)


class PartitionState(NamedTuple):
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    """NO_NODE while no replica that is known to have every committed record is on an unfenced broker."""
    leader_epoch: LeaderEpoch
    partition_epoch: int
    directories: tuple[bytes, ...]
    elr: tuple[NodeId, ...] = ()
    """Eligible leader replicas: not in sync, but known to have every committed record, because nothing has been
    committed since they left the in-sync set, which is below min.insync.replicas (KIP-966)."""
    last_known_elr: tuple[NodeId, ...] = ()
    """Replicas that were eligible or in sync until their machines lost unsynced records."""
    adding: tuple[NodeId, ...] = ()
    """The replicas that a reassignment adds; they are in `replicas` already."""
    removing: tuple[NodeId, ...] = ()
    """The replicas that a reassignment removes when the added ones are in sync; they are in `replicas` still."""


class ListTable(Generic[Listed]):
    """Numbers for lists. It only grows, so that an image and its copies can share it.

    Its size is the number of different lists since the image was loaded, not the number of partitions.
    """

    __slots__ = ("_numbers", "lists")

    def __init__(self) -> None:
        self.lists: list[Listed] = []
        self._numbers: dict[Listed, int] = {}

    def number_of(self, items: Listed) -> int:
        number = self._numbers.get(items)
        if number is None:
            number = self._numbers[items] = len(self.lists)
            self.lists.append(items)
        return number


class Tables:
    """The lists that the partition states of one image refer to."""

    __slots__ = ("directories", "memberships", "nodes")

    def __init__(self) -> None:
        self.nodes: ListTable[tuple[NodeId, ...]] = ListTable()
        self.directories: ListTable[tuple[bytes, ...]] = ListTable()
        self.memberships: ListTable[PartitionMembers] = ListTable()

    def naming(self, node_id: NodeId) -> frozenset[int]:
        """Return the numbers of the lists that name this broker as a replica, in sync or eligible."""
        named = {number for number, nodes in enumerate(self.nodes.lists) if node_id in nodes}
        named.update(
            ~number
            for number, membership in enumerate(self.memberships.lists)
            if node_id in membership.isr or node_id in membership.elr
        )
        return frozenset(named)

    def members(self, number: int) -> tuple[NodeId, ...]:
        """Return the in-sync and the eligible replicas behind a number of the in-sync column."""
        if number >= 0:
            return self.nodes.lists[number]
        membership = self.memberships.lists[~number]
        return (*membership.isr, *membership.elr)


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
        return _find(self._rows[_LEADER::ROW_FIELDS], node_id)

    def held_by(self, node_id: NodeId) -> list[int]:
        """Return the partitions of which this broker is a replica, in order."""
        replicas = self._rows[_REPLICAS::ROW_FIELDS]
        nodes = self._tables.nodes.lists
        holding = {number for number in dict.fromkeys(replicas) if node_id in nodes[number]}
        return [index for index, number in enumerate(replicas) if number in holding] if holding else []

    def members_in(self, naming: frozenset[int]) -> list[int]:
        """Return the partitions whose in-sync or eligible replicas are one of these lists, in order."""
        column = self._rows[_ISR::ROW_FIELDS]
        if len(naming) > FINDS_MAX:
            return [] if naming.isdisjoint(column) else [i for i, number in enumerate(column) if number in naming]
        return sorted(index for number in naming for index in _find(column, number))

    def leaderless_on(self, node_id: NodeId) -> list[int]:
        """Return the partitions without a leader of which this broker is a replica, in order."""
        leaderless = self.led_by(NO_NODE)
        nodes, rows = self._tables.nodes.lists, self._rows
        return [index for index in leaderless if node_id in nodes[rows[index * ROW_FIELDS + _REPLICAS]]]

    def members(self, first: int) -> Iterator[NodeId]:
        """Iterate over the brokers with in-sync or eligible replicas of the partitions from `first` on."""
        members = self._tables.members
        numbers = dict.fromkeys(self._rows[first * ROW_FIELDS + _ISR :: ROW_FIELDS])
        return iter(dict.fromkeys(node for number in numbers for node in members(number)))

    def leaderless_nodes(self, first: int) -> Iterator[NodeId]:
        """Iterate over the brokers with replicas of the partitions from `first` on that have no leader."""
        leaders = self._rows[first * ROW_FIELDS + _LEADER :: ROW_FIELDS]
        replicas = self._rows[first * ROW_FIELDS + _REPLICAS :: ROW_FIELDS]
        numbers = dict.fromkeys(number for leader, number in zip(leaders, replicas, strict=True) if leader == NO_NODE)
        nodes = self._tables.nodes.lists
        return iter(dict.fromkeys(node for number in numbers for node in nodes[number]))

    def unsettled(self) -> list[int]:
        """Return the partitions that have no leader, or eligible leader replicas, in order."""
        column = self._rows[_ISR::ROW_FIELDS]
        memberships = self._tables.memberships.lists
        eligible = (
            [i for i, number in enumerate(column) if number < 0 and memberships[~number].elr]
            if self._rows and min(column) < 0
            else []
        )
        return sorted({*self.led_by(NO_NODE), *eligible})

    def led_by_others(self) -> list[int]:
        """Return the partitions with another leader than their first replica, in order."""
        nodes = self._tables.nodes.lists
        replicas = self._rows[_REPLICAS::ROW_FIELDS]
        preferred = {number: nodes[number][0] for number in dict.fromkeys(replicas)}
        leaders = self._rows[_LEADER::ROW_FIELDS]
        return [
            index
            for index, (leader, number) in enumerate(zip(leaders, replicas, strict=True))
            if preferred[number] != leader and leader != NO_NODE
        ]

    def moving(self, first: int) -> Iterator[int]:
        """Iterate over the partitions from `first` on that are being reassigned."""
        column = self._rows[first * ROW_FIELDS + _ISR :: ROW_FIELDS]
        if not column or min(column) >= 0:
            return
        memberships = self._tables.memberships.lists
        for index, number in enumerate(column, first):
            if number < 0 and (memberships[~number].adding or memberships[~number].removing):
                yield index

    def preferred_leaders(self, first: int = 0) -> Counter[NodeId]:
        """Count the partitions from `first` on by the first of their replicas."""
        nodes = self._tables.nodes.lists
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
        tables = self._tables
        nodes = tables.nodes.lists
        plain = (
            nodes[replicas],
            NodeId(leader),
            LeaderEpoch(leader_epoch),
            partition_epoch,
            tables.directories.lists[directories],
        )
        if isr >= 0:
            return PartitionState(plain[0], nodes[isr], *plain[1:])
        members = tables.memberships.lists[~isr]
        return PartitionState(
            plain[0],
            members.isr,
            *plain[1:],
            members.elr,
            members.last_known_elr,
            members.adding,
            members.removing,
        )

    def _row(self, state: PartitionState) -> "array[int]":
        tables = self._tables
        if state.elr or state.last_known_elr or state.adding or state.removing:
            membership = PartitionMembers(state.isr, state.elr, state.last_known_elr, state.adding, state.removing)
            isr = ~tables.memberships.number_of(membership)
        else:
            isr = tables.nodes.number_of(state.isr)
        try:
            return array(
                _INTEGER,
                (
                    state.leader,
                    state.leader_epoch,
                    state.partition_epoch,
                    tables.nodes.number_of(state.replicas),
                    isr,
                    tables.directories.number_of(state.directories),
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
        tables = self._tables
        memberships = tuple(tables.memberships.lists[~number] for number in _renumber_memberships(rows))
        node_lists = tuple(tables.nodes.lists[number] for number in _renumber(rows, _REPLICAS, _ISR))
        directory_lists = tuple(tables.directories.lists[number] for number in _renumber(rows, _DIRECTORIES))
        items = sum(map(len, node_lists)) + sum(map(len, directory_lists))
        items += sum(len(nodes) for membership in memberships for nodes in _lists_of(membership))
        if items > LIST_ITEMS_PER_RECORD_MAX and count > 1:
            yield from self._packed(topic_id, first, count // 2)
            yield from self._packed(topic_id, first + count // 2, count - count // 2)
            return
        if sys.byteorder == "big":
            rows.byteswap()
        yield TopicPartitionsRecord(topic_id, first, node_lists, directory_lists, rows.tobytes(), memberships)

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
        memberships = [~self._tables.memberships.number_of(items) for items in record.memberships]
        _look_up(rows, _REPLICAS, nodes)
        _look_up(rows, _ISR, nodes, memberships)
        _look_up(rows, _DIRECTORIES, directories)
        self._rows += rows
        return len(rows) // ROW_FIELDS


def _lists_of(membership: PartitionMembers) -> tuple[tuple[NodeId, ...], ...]:
    return (
        membership.isr,
        membership.elr,
        membership.last_known_elr,
        membership.adding,
        membership.removing,
    )


def _find(column: "array[int]", number: int) -> list[int]:
    """Return the places of a number in a column: searching bytes is many times faster than comparing integers."""
    wanted, size = array(_INTEGER, (number,)).tobytes(), column.itemsize
    content = column.tobytes()
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


def _renumber(rows: "array[int]", *fields: int) -> dict[int, int]:
    """Number the lists of these columns in the order in which they appear; return the new numbers by the old.

    Negative numbers, which stand for memberships, stay.
    """
    numbers: dict[int, int] = {}
    for field in fields:
        column = rows[field::ROW_FIELDS]
        for number in dict.fromkeys(column):
            if number >= 0:
                numbers.setdefault(number, len(numbers))
        rows[field::ROW_FIELDS] = array(_INTEGER, [numbers.get(number, number) for number in column])
    return numbers


def _renumber_memberships(rows: "array[int]") -> dict[int, int]:
    """Number the memberships as -1, -2 and so on; return the new numbers by the old."""
    column = rows[_ISR::ROW_FIELDS]
    old = [number for number in dict.fromkeys(column) if number < 0]
    numbers = {number: ~place for place, number in enumerate(old)}
    if numbers:
        rows[_ISR::ROW_FIELDS] = array(_INTEGER, [numbers.get(number, number) for number in column])
    return numbers


def _look_up(rows: "array[int]", field: int, numbers: list[int], negative: Sequence[int] = ()) -> None:
    column = rows[field::ROW_FIELDS]
    lowest, highest = min(column), max(column)
    if not -len(negative) <= lowest <= highest < len(numbers):
        wrong = highest if lowest >= -len(negative) else lowest
        raise RecordError(
            f"a partition refers to list {wrong}, its record has {len(numbers)} and {len(negative)} memberships"
        )
    both = [*numbers, *reversed(negative)]  # -1 is the last one
    rows[field::ROW_FIELDS] = array(_INTEGER, [both[number] for number in column])

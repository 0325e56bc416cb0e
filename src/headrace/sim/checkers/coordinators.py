"""Check coordinators after a turn: each partition has one owner, and replaying the log gives the live state."""

from typing import Any

from headrace.broker.coordinators.host import CoordinatorHost
from headrace.broker.coordinators.replay import PartitionReplay
from headrace.broker.node import Node
from headrace.core.coordination.machine import RecordFormat
from headrace.core.groups.consumer_group import ConsumerGroup
from headrace.core.groups.coordinator import GroupCoordinator
from headrace.core.transactions.coordinator import TransactionCoordinator
from headrace.model.ids import NO_PRODUCER_ID
from headrace.sim.checkers.groups import ONE_OWNER
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.context import RunContext

OWNERS_CHECK_TURNS = 8
REPLAY_CHECK_TURNS = 200
DELAYED_MS = 400.0
"""An answer that waits so long for its commit was delayed; a turn is at most a fifth of it."""
COMMIT_DELAYED = "coordinator's commit delayed"
REPLAYS = "a replay of a coordinator's log gives its state"


class CoordinatorChecks:
    """One object a run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._turns = 0
        self._delayed: object = None

    def check(self, node: Node) -> None:
        self._turns += 1
        for host in (*node.broker.groups.topic, *node.broker.transactions.topic):
            self._note_delay(host)
        if self._turns % OWNERS_CHECK_TURNS == 0:
            self._check_owners(node)
        if self._turns % REPLAY_CHECK_TURNS == 0:
            self.check_replays(node)
            self.check_transaction_replays(node)

    def _note_delay(self, host: CoordinatorHost[Any, Any]) -> None:
        held = host._held
        if held and held[0] is not self._delayed and host.now().monotonic_ms - held[0].since_ms > DELAYED_MS:
            self._delayed = held[0]
            self._context.world.trace.count_fault(COMMIT_DELAYED)

    def _check_owners(self, node: Node) -> None:
        for host in node.broker.groups.topic:
            if host.machine is None:
                continue
            for group in host.machine.tables.consumer_groups.values():
                held = [part for member in group.members.values() for part in member.current.assigned]
                held += [part for member in group.members.values() for part in member.current.revoking]
                require(len(held) == len(set(held)), ONE_OWNER, f"{group.group_id} has {held}")

    def check_replays(self, node: Node) -> None:
        """Of groups: the log, read again from its start, gives what the coordinator knows."""
        for host in node.broker.groups.topic:
            log = host.partition.log
            if host.machine is None or not host.partition.serves or log.staged_end_offset != log.end_offset:
                continue
            replayed = host._new_machine()
            self._replay(host, _Applied(replayed, host._format))
            live, told = _durable(host.machine), _durable(replayed)
            for name, value in live.items():
                if told[name] != value:
                    raise Violation(REPLAYS, f"{log.topic_partition}: {name} are {value}, the log tells {told[name]}")

    def check_transaction_replays(self, node: Node) -> None:
        """Check the transactions and batch commits of every coordinator against a replay of its log."""
        for host in node.broker.transactions.topic:
            log = host.partition.log
            if host.machine is None or not host.partition.serves or log.staged_end_offset != log.end_offset:
                continue
            replayed = host._new_machine()
            self._replay(host, _Applied(replayed, host._format))
            for name in ("transactions", "batch commits"):
                live, told = (_transactions(machine)[name] for machine in (host.machine, replayed))
                if live != told:
                    raise Violation(REPLAYS, f"{log.topic_partition}: {name} are {live}, the log tells {told}")

    def _replay(self, host: CoordinatorHost[Any, Any], applied: "_Applied") -> None:
        """By hand, so that nothing armed for the node's own calls strikes here."""
        disk = self._context.virtual.machine.disk
        armed, disk.on_operation = disk.on_operation, None
        try:
            replay = PartitionReplay(host.partition, applied, lambda failure: None)
            while part := replay.next_range():
                replay.take(disk.read(part.file, part.length, part.position))
        finally:
            disk.on_operation = armed


class _Applied:
    """A machine that hears what the log tells."""

    def __init__(self, machine: Any, record_format: RecordFormat[Any]) -> None:
        self._machine = machine
        self._format = record_format

    def record(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int) -> None:
        assert key is not None, f"the record at offset {offset} has no key"
        record = self._format.decode(key, value)
        if record is None:
            return
        if producer_id == NO_PRODUCER_ID:
            self._machine.apply(record)
        else:
            self._machine.apply_pending(producer_id, record)

    def marker(self, producer_id: int, *, commit: bool) -> None:
        self._machine.end_transaction(producer_id, commit=commit)


def _durable(machine: GroupCoordinator) -> dict[str, object]:
    return {
        "offsets": {group_id: sorted(offsets) for group_id, offsets in machine.tables.offsets.items()},
        "agreements": {
            group.group_id: group.recorded for group in machine.tables.classic_groups.values() if group.recorded
        },
        "consumer groups": {group.group_id: _consumers(group) for group in machine.tables.consumer_groups.values()},
        "pending offsets": machine.tables.pending_offsets.staged(),
    }


def _transactions(machine: TransactionCoordinator) -> dict[str, object]:
    return {
        "transactions": machine.tables.transactions,
        "batch commits": (machine.tables.owners, machine.tables.pools.by_owner),
    }


def _consumers(group: ConsumerGroup) -> tuple[object, ...]:
    members = {member.member_id: (member.subscription, member.current) for member in group.members.values()}
    return group.epoch, group.target_epoch, members, group.targets, group.owners, group.static_members

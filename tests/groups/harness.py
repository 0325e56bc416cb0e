"""A group coordinator with a log, a clock and members that remember the responses they got."""

from typing import Any, NamedTuple

from headrace.core.coordination.machine import PendingProducer
from headrace.core.groups.commands import (
    Commit,
    DeleteOffsets,
    FetchOffsets,
    Join,
    JoinResult,
    Leave,
    LeavingMember,
    MemberClaim,
    OffsetToCommit,
    Sync,
    SyncResult,
)
from headrace.core.groups.coordinator import GroupCoordinator
from headrace.core.groups.deadlines import DeadlineKind, GroupDeadline
from headrace.core.groups.records import GroupRecords
from headrace.core.groups.settings import GroupCoordinatorSettings
from headrace.core.groups.states import GroupState
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_PRODUCER_ID
from tests.core.manual_clock import PassingTime, Ticket

GROUP = "g"
FORMAT = GroupRecords()


class Catalog:
    def __init__(self, **topics):
        self.topics = topics
        self.version = 1

    def find(self, name):
        count = self.topics.get(name)
        return None if count is None else (name.encode().ljust(16, b"\0"), count)

    def name_of(self, topic_id):
        name = topic_id.rstrip(b"\0").decode()
        return name if name in self.topics else None

    def names(self, _requester):
        return tuple(self.topics)

    def change(self, **topics):
        self.topics = {name: count for name, count in {**self.topics, **topics}.items() if count}
        self.version += 1


class Entry(NamedTuple):
    producer_id: int
    key: bytes
    value: bytes | None


class Marker(NamedTuple):
    producer_id: int
    commit: bool


def compacted_log(log):
    """Return what a compaction leaves at most: below the first open transaction only the last record of every key,
    without tombstones and without what was aborted; everything from there on."""
    outcomes = {}
    open_from: dict[Any, Any] = {}
    """Of each producer with an open transaction, the places of its records."""
    for place, entry in enumerate(log):
        if isinstance(entry, Marker):
            outcomes.update(dict.fromkeys(open_from.pop(entry.producer_id, ()), entry.commit))
        elif entry.producer_id != NO_PRODUCER_ID:
            open_from.setdefault(entry.producer_id, []).append(place)
    stable_end = min((places[0] for places in open_from.values()), default=len(log))
    stable = [
        (place, entry)
        for place, entry in enumerate(log[:stable_end])
        if isinstance(entry, Marker) or outcomes.get(place, True)
    ]
    last = {entry.key: place for place, entry in stable if isinstance(entry, Entry)}
    kept = [
        entry
        for place, entry in stable
        if isinstance(entry, Marker) or (last[entry.key] == place and entry.value is not None)
    ]
    return [*kept, *log[stable_end:]]


class KnownMember:
    """A client's knowledge of itself."""

    def __init__(self, name):
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.instance_id = None
        self.protocols = (("range", b""),)
        self.assignment = None
        self.leads = False


class Harness(PassingTime):
    def __init__(self, **settings):
        super().__init__()
        self.settings = GroupCoordinatorSettings(**settings)
        self.catalog = Catalog(t=6)
        self.log = []
        self.machine = GroupCoordinator(self.settings, self.catalog)
        self.machine.loaded(self.now())
        self.members = {}
        self.ids_given = 0

    def member(self, name):
        return self.members.setdefault(name, KnownMember(name))

    # Steps

    def run(self, decide):
        """Decide, write, check that the log tells the same, and hand out the answers as (ticket, response)."""
        decision = decide(self.machine, self.now())
        for record in decision.records:
            key, value = FORMAT.encode(record)
            assert FORMAT.decode(key, value) == record
            producer_id = NO_PRODUCER_ID if decision.producer is None else decision.producer.producer_id
            self.log.append(Entry(producer_id, key, value))
        self.check()
        for ticket, response in decision.responses:
            self._learn(ticket, response)
            self.outcomes.append((ticket, response))
        return decision

    def end_transaction(self, producer_id, *, commit):
        """The marker of a producer's transaction is appended."""
        self.machine.end_transaction(producer_id, commit=commit)
        self.log.append(Marker(producer_id, commit))
        self.check()

    def check(self):
        """The machine is sound, and so are those that the log gives, as it is and compacted; all know the same."""
        check_machine(self.machine)
        check_waits(self.machine)
        for compacted in (False, True):
            replayed = self.replayed(compacted=compacted)
            check_machine(replayed)
            assert durable(replayed) == durable(self.machine)

    def replayed(self, *, compacted=False):
        """A machine from the log."""
        machine = GroupCoordinator(self.settings, self.catalog)
        for entry in compacted_log(self.log) if compacted else self.log:
            if isinstance(entry, Marker):
                machine.end_transaction(entry.producer_id, commit=entry.commit)
            elif entry.producer_id == NO_PRODUCER_ID:
                machine.apply(FORMAT.decode(entry.key, entry.value))
            else:
                machine.apply_pending(entry.producer_id, FORMAT.decode(entry.key, entry.value))
        return machine

    def restart(self):
        """The coordinator is gone; another one reads the log."""
        self.machine = self.replayed()
        self.machine.loaded(self.now())

    def _learn(self, ticket, response):
        member = self.members.get(ticket.name)
        if isinstance(response, JoinResult):
            if response.error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                member.member_id = response.member_id
            if response.error is ErrorCode.NONE:
                member.generation = response.generation
                member.leads = response.leader == response.member_id
                member.assignment = None
        elif isinstance(response, SyncResult) and response.error is ErrorCode.NONE:
            member.assignment = response.assignment

    # Requests

    def join(
        self,
        name,
        *,
        required=True,
        skip=True,
        session_ms=10_000,
        rebalance_ms=60_000,
        protocol_type="consumer",
        **known,
    ):
        member = self.member(name)
        for key, value in known.items():
            setattr(member, key, value)
        self.ids_given += 1
        command = Join(
            group=GROUP,
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=member.protocols,
            new_member_id=f"{name}-{self.ids_given}",
            member_id_required=required,
            skip_assignment_supported=skip,
        )
        return self.run(lambda machine, now: machine.join(command, Ticket(name, "join"), now))

    def membership(self, name, generation=None):
        member = self.member(name)
        return MemberClaim(
            group=GROUP,
            member_id=member.member_id,
            instance_id=member.instance_id,
            generation=member.generation if generation is None else generation,
        )

    def sync(self, name, assignments=None, *, generation=None, protocol=None):
        given = tuple((self.member(each).member_id, content) for each, content in (assignments or {}).items())
        command = Sync(
            member=self.membership(name, generation), protocol_type=None, protocol=protocol, assignments=given
        )
        return self.run(lambda machine, now: machine.sync(command, Ticket(name, "sync"), now))

    def heartbeat(self, name, generation=None):
        member = self.membership(name, generation)
        return self.run(lambda machine, now: machine.heartbeat(member, Ticket(name, "heartbeat"), now))

    def leave(self, *names):
        leaving = [LeavingMember(self.member(name).member_id, self.member(name).instance_id) for name in names]
        return self.remove(leaving, Ticket(" ".join(names), "leave"))

    def remove(self, leaving, ticket):
        command = Leave(group=GROUP, members=tuple(leaving))
        return self.run(lambda machine, now: machine.leave(command, ticket, now))

    def commit(self, name, offsets, *, generation=None, metadata="", retention_ms=-1, group=GROUP, producer=None):
        """Commit `offsets`, {(topic, partition): offset}; without a name, as no member; or in a transaction."""
        if name:
            member = self.membership(name, generation)
        else:
            member = MemberClaim(group=group, member_id="", instance_id=None, generation=-1)
        command = Commit(
            member=member,
            offsets=tuple(
                OffsetToCommit(topic, partition, offset, -1, metadata) for (topic, partition), offset in offsets.items()
            ),
            retention_ms=retention_ms,
            unknown_group_error=ErrorCode.ILLEGAL_GENERATION,
            producer=None if producer is None else PendingProducer(producer, 0),
        )
        return self.run(lambda machine, now: machine.offset_requests.commit(command, Ticket(name, "commit"), now))

    def fetch(self, wanted=None, group=GROUP, *, stable=False):
        """{(topic, partition): offset}; for an offset that is not there None, or its error."""
        partitions = None if wanted is None else tuple(wanted)
        command = FetchOffsets(group=group, partitions=partitions, require_stable=stable)
        decision = self.run(lambda machine, _now: machine.offset_requests.fetch(command, Ticket("", "fetch")))
        return {
            (each.topic, each.partition): each.committed.offset if each.committed else each.error or None
            for each in decision.responses[0].response
        }

    def delete_group(self, group=GROUP):
        """Delete a group and return the error."""
        self.run(lambda machine, _now: machine.delete_group(group, Ticket("", "delete")))
        return self.last("delete")

    def delete_offsets(self, *partitions, group=GROUP):
        """Delete offsets and return the result."""
        command = DeleteOffsets(group=group, partitions=partitions)
        self.run(lambda machine, _now: machine.offset_requests.delete(command, Ticket("", "delete offsets")))
        return self.last("delete offsets")

    def forget_topics(self, topics, groups):
        self.run(lambda machine, _now: machine.offset_requests.forget_topics(topics, groups, Ticket("", "forget")))

    def last(self, kind):
        """The newest answer to a request of that kind."""
        return next(response for ticket, response in reversed(self.outcomes) if ticket.kind == kind)

    @property
    def group(self):
        return self.machine.tables.classic_groups.get(GROUP)


def durable(machine):
    """Return what must survive: the offsets, and the recorded generation of every group that has one."""
    tables = machine.tables
    return (
        {group_id: sorted(offsets) for group_id, offsets in tables.offsets.items()},
        {group.group_id: group.recorded for group in tables.classic_groups.values() if group.recorded is not None},
        {group.group_id: durable_consumers(group) for group in tables.consumer_groups.values()},
        tables.pending_offsets.staged(),
    )


def durable_consumers(group):
    members = {each.member_id: (each.subscription, each.current) for each in group.members.values()}
    return group.epoch, group.target_epoch, members, group.targets, group.owners, group.static_members


def check_machine(machine):
    tables = machine.tables
    for group in tables.classic_groups.values():
        check_group(group)
    for consumers in tables.consumer_groups.values():
        check_consumers(consumers)
    assert not tables.classic_groups.keys() & tables.consumer_groups.keys()
    for group_id in tables.groups_with_offsets():
        assert group_id in tables.classic_groups or group_id in tables.consumer_groups
    assert tables.pending_offsets.count == len(tables.pending_offsets.staged())


def check_waits(machine):
    """A member that says nothing any more is missed one day, and what it has becomes another's."""

    def is_awaited(wait, group_id, member_id=""):
        return machine._deadlines.due_ms(GroupDeadline(wait, group_id, member_id)) is not None

    for group_id, group in machine.tables.classic_groups.items():
        for member_id, member in group.members.items():
            assert member.join_ticket or member.sync_ticket or is_awaited(DeadlineKind.SESSION, group_id, member_id)
        assert all(is_awaited(DeadlineKind.PENDING_MEMBER, group_id, member_id) for member_id in group.pending)
        assert group.state is not GroupState.PREPARING_REBALANCE or is_awaited(DeadlineKind.JOINS, group_id)
        assert group.state is not GroupState.COMPLETING_REBALANCE or is_awaited(DeadlineKind.SYNCS, group_id)
    for group_id, consumers in machine.tables.consumer_groups.items():
        assert all(is_awaited(DeadlineKind.SESSION, group_id, member_id) for member_id in consumers.members)


def check_consumers(group):
    """Nothing belongs to two members, and no member has what it must not have, unless it is to let go of it."""
    held = [part for member in group.members.values() for part in (*member.current.assigned, *member.current.revoking)]
    assert len(held) == len(set(held)) == len(group.owners)
    for member in group.members.values():
        assert all(group.owners[part] == member.member_id for part in member.current.assigned)
    if group.epoch == group.target_epoch:
        shall_have = [part for member_id in group.members for part in group.targets.get(member_id, ())]
        assert len(shall_have) == len(set(shall_have))
    assert group.target_epoch <= group.epoch or not group.epoch


def check_group(group):
    """Check what must hold between any two events."""
    waiting = [member for member in group.members.values() if member.join_ticket is not None]
    assert group.waiting_joins == len(waiting)
    assert group.metadata_bytes == sum(member.metadata_bytes() for member in group.members.values())
    assert {member.instance_id: member_id for member_id, member in group.members.items() if member.instance_id} == (
        group.static_members
    )
    assert all(member_id == member.member_id for member_id, member in group.members.items())
    assert not group.pending.keys() & group.members.keys()
    assert not group.unsynced.keys() - group.members.keys()
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        assert group.leader in group.members
        assert {member.member_id for member in waiting} <= group.awaiting_response.keys(), (
            "they are answered in a later turn"
        )
    else:
        assert not group.awaiting_response
    if group.state is GroupState.STABLE:
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        assert group.to_metadata(assignments, group.since_ms) == group.recorded
        assert {each.member_id for each in group.members.values() if each.sync_ticket} <= group.awaiting_response.keys()
    if group.state is GroupState.EMPTY:
        assert not group.members

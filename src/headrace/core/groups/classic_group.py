"""One classic group: its members, the protocols they support, and the current generation.

A completed generation is written as a record and changes only by `apply_metadata`. The progress of a rebalance (which
members have joined, which are awaited) is not written: a restarted coordinator knows the last completed generation,
and members that were joining join again.
"""

from collections import Counter
from collections.abc import Sequence

from headrace.core.coordination.machine import Ticket
from headrace.core.groups.commands import NO_GENERATION, JoinedMember, Protocols
from headrace.core.groups.records import GroupMetadata, MemberMetadata
from headrace.core.groups.states import GroupEvent, GroupState, next_state
from headrace.core.groups.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TIMESTAMP


class ClassicGroupMember:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_ticket",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_ticket",
    )

    def __init__(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = b""
        self.join_ticket: Ticket | None = None
        """Set while its JoinGroup request waits for the other members."""
        self.sync_ticket: Ticket | None = None
        """Set while its SyncGroup request waits for the leader's assignment."""
        self.is_new = False
        """True until the member has received its first join response, and with it its id."""

    def metadata_for(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def metadata_bytes(self) -> int:
        return sum(len(name) + len(metadata) for name, metadata in self.protocols) + len(self.assignment)


class ClassicGroup:
    __slots__ = (
        "_protocol_support",
        "_subscribed",
        "awaiting_response",
        "generation",
        "group_id",
        "initial_wait_end_ms",
        "joins_initially",
        "leader",
        "members",
        "metadata_bytes",
        "pending",
        "protocol",
        "protocol_type",
        "recorded",
        "since_ms",
        "state",
        "static_members",
        "unsynced",
        "waiting_joins",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        """None for a group that only holds offsets, for consumers that assign partitions to themselves."""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.since_ms = NO_TIMESTAMP
        """The time when the generation was completed, or the group became empty."""
        self.members: dict[str, ClassicGroupMember] = {}
        """Members by id, in the order in which they joined."""
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending: dict[str, None] = {}
        """Member ids that were handed out and with which no member has joined yet."""
        self.unsynced: dict[str, None] = {}
        """Members of the generation that have not asked for their assignment yet."""
        self.awaiting_response: dict[str, None] = {}
        """Members whose join or sync result is decided and not sent yet; a large group takes several turns."""
        self.waiting_joins = 0
        self.metadata_bytes = 0
        self._protocol_support: Counter[str] = Counter()
        """The number of members that support each protocol."""
        self.joins_initially = False
        """The current rebalance began with an empty group, so it waits for more members while they keep coming."""
        self.initial_wait_end_ms = 0.0
        """The latest end of that wait."""
        self.recorded: GroupMetadata | None = None
        """The last completed generation, as it was written."""
        self._subscribed: frozenset[str] | None = None

    # The recorded generation

    def apply_metadata(self, metadata: GroupMetadata) -> None:
        """Set the state of the group from the record of a generation, newly written or read from the log."""
        self.recorded = metadata
        self.protocol_type = metadata.protocol_type or None
        self.generation = metadata.generation
        self.protocol = metadata.protocol
        self.since_ms = metadata.since_ms
        self.state = GroupState.STABLE if metadata.members else GroupState.EMPTY
        recorded = {member.member_id: member for member in metadata.members}
        for member_id in [member_id for member_id in self.members if member_id not in recorded]:
            self.remove(member_id)
        for written in metadata.members:
            member = self._restored(written, metadata.protocol or "")
            self.assign(member, written.assignment)
        self.members = {member_id: self.members[member_id] for member_id in recorded}
        self.leader = metadata.leader
        self._find_subscribed()

    def _restored(self, written: MemberMetadata, protocol: str) -> ClassicGroupMember:
        """Return the member of a record, updated or created.

        A live member supports more protocols than the one in the record; a member read from the log only that one.
        """
        member = self.members.get(written.member_id)
        if member is None:
            member = ClassicGroupMember(
                member_id=written.member_id,
                instance_id=written.instance_id,
                client_id=written.client_id,
                client_host=written.client_host,
                rebalance_timeout_ms=written.rebalance_timeout_ms,
                session_timeout_ms=written.session_timeout_ms,
                protocols=((protocol, written.subscription),),
            )
            self.add(member)
            return member
        if (protocol, written.subscription) not in member.protocols:
            self.set_protocols(member, ((protocol, written.subscription),))
        member.client_id, member.client_host = written.client_id, written.client_host
        member.rebalance_timeout_ms = written.rebalance_timeout_ms
        member.session_timeout_ms = written.session_timeout_ms
        return member

    def to_metadata(self, assignments: dict[str, bytes], since_ms: int) -> GroupMetadata:
        """Return the record of this generation with these assignments."""
        return GroupMetadata(
            self.protocol_type or "",
            self.generation,
            self.protocol,
            self.leader,
            since_ms,
            tuple(
                MemberMetadata(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    member.metadata_for(self.protocol),
                    assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ),
        )

    def move(self, event: GroupEvent) -> None:
        self.state = next_state(self.state, event)

    # Members

    def add(self, member: ClassicGroupMember) -> None:
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self._count(member, 1)

    def remove(self, member_id: str) -> ClassicGroupMember | None:
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count(member, -1)
        if member.join_ticket is not None:
            self.waiting_joins -= 1
        self.unsynced.pop(member_id, None)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, instance_id: str, new_member_id: str) -> ClassicGroupMember:
        """Give a static member a new id, and keep its position in the order of members."""
        old_member_id = self.static_members[instance_id]
        member = self.members[old_member_id]
        self.members = {
            (new_member_id if member_id == old_member_id else member_id): each
            for member_id, each in self.members.items()
        }
        member.member_id = new_member_id
        self.static_members[instance_id] = new_member_id
        if old_member_id in self.unsynced:
            del self.unsynced[old_member_id]
            self.unsynced[new_member_id] = None
        if self.leader == old_member_id:
            self.leader = new_member_id
        return member

    def set_protocols(self, member: ClassicGroupMember, protocols: Protocols) -> None:
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def assign(self, member: ClassicGroupMember, assignment: bytes) -> None:
        self.metadata_bytes += len(assignment) - len(member.assignment)
        member.assignment = assignment

    def hold_join(self, member: ClassicGroupMember, ticket: Ticket) -> Ticket | None:
        """Hold the member's join until the others have joined; return the ticket of the join that it replaces."""
        earlier, member.join_ticket = member.join_ticket, ticket
        if earlier is None:
            self.waiting_joins += 1
        return earlier

    def take_join_ticket(self, member: ClassicGroupMember) -> Ticket | None:
        ticket, member.join_ticket = member.join_ticket, None
        if ticket is not None:
            self.waiting_joins -= 1
        return ticket

    def _count(self, member: ClassicGroupMember, sign: int) -> None:
        self.metadata_bytes += sign * member.metadata_bytes()
        for name in dict.fromkeys(name for name, _ in member.protocols):
            self._protocol_support[name] += sign
            if not self._protocol_support[name]:
                del self._protocol_support[name]

    # Lookups

    @property
    def is_void(self) -> bool:
        """Return whether the group has no members, no pending members and no record."""
        return not self.members and not self.pending and self.recorded is None and self.state is GroupState.EMPTY

    @property
    def all_joined(self) -> bool:
        return self.waiting_joins == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def member_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Check that the id is that of a member, and the current one of its instance if the request names one."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports_protocols(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether all current members support at least one of these protocols."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return self.state is GroupState.EMPTY or self.protocol_type in (None, protocol_type)
        return self.protocol_type == protocol_type and any(
            self._protocol_support.get(name) == len(self.members) for name, _ in protocols
        )

    def elected_protocol(self) -> str:
        """Return the protocol that most members prefer among those that all support; the first one on a tie."""
        common = {name for name, count in self._protocol_support.items() if count == len(self.members)}
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes[next(name for name, _ in member.protocols if name in common)] += 1
        return votes.most_common(1)[0][0]

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """Return all members with their metadata for the elected protocol, for the leader's join response."""
        return tuple(
            JoinedMember(member.member_id, member.instance_id, member.metadata_for(self.protocol))
            for member in self.members.values()
        )

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether members may read the topic; True if their subscriptions cannot be parsed."""
        if not self.uses_consumer_protocol or not self.members:
            return False
        return self._subscribed is None or topic in self._subscribed

    @property
    def subscribed(self) -> frozenset[str] | None:
        """The topics that members of the generation read; None if their subscriptions cannot be parsed."""
        return self._subscribed

    def begin_generation(self) -> None:
        """Begin the next generation with the current members."""
        self.generation = NO_GENERATION + 1 if self.generation == 2**31 - 1 else self.generation + 1
        self.unsynced.clear()
        self.protocol = self.elected_protocol() if self.members else None
        if not self.members:
            self.leader = None
        self._find_subscribed()

    def _find_subscribed(self) -> None:
        self._subscribed = None
        if self.uses_consumer_protocol and self.members:
            self._subscribed = _all_topics([member.metadata_for(self.protocol) for member in self.members.values()])


def _all_topics(subscriptions: Sequence[bytes]) -> frozenset[str] | None:
    found: set[str] = set()
    for subscription in dict.fromkeys(subscriptions):  # most members of a group subscribe to the same topics
        topics = subscribed_topics(subscription)
        if topics is None:
            return None
        found.update(topics)
    return frozenset(found)

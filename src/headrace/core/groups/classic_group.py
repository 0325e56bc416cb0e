"""One classic group: its members, what they can speak, and the generation they agreed on.

What is agreed on is written as a record and changes only by `settle`. The way to the next agreement (who has joined,
who is waited for) is not written: a coordinator that starts again knows the last agreement, and members that were
joining join again.
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


class Member:
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
        """Its JoinGroup waits for the others."""
        self.sync_ticket: Ticket | None = None
        """Its SyncGroup waits for the leader's."""
        self.is_new = False
        """It has not been told its id yet."""

    def metadata_for(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def metadata_bytes(self) -> int:
        return sum(len(name) + len(metadata) for name, metadata in self.protocols) + len(self.assignment)


class ClassicGroup:
    __slots__ = (
        "_speakers",
        "_subscribed",
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
        "untold",
        "waiting_joins",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        """None for a group that only keeps offsets, of consumers that assign partitions to themselves."""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.since_ms = NO_TIMESTAMP
        """When the generation was agreed on, or the group became empty."""
        self.members: dict[str, Member] = {}
        """In the order of joining."""
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending: dict[str, None] = {}
        """Ids given out whose owners have not joined with them yet."""
        self.unsynced: dict[str, None] = {}
        """Members of the generation that have not asked for their assignment yet."""
        self.untold: dict[str, None] = {}
        """Members of a large group that were not answered yet since it was decided what they wait for."""
        self.waiting_joins = 0
        self.metadata_bytes = 0
        self._speakers: Counter[str] = Counter()
        """How many members can speak each protocol."""
        self.joins_initially = False
        """The rebalance under way began with an empty group: it waits for more members while they keep coming."""
        self.initial_wait_end_ms = 0.0
        """When such a rebalance begins at the latest."""
        self.recorded: GroupMetadata | None = None
        """The last agreement, as it was written."""
        self._subscribed: frozenset[str] | None = None

    # The agreement

    def settle(self, metadata: GroupMetadata) -> None:
        """A written agreement becomes the state of the group: by its leader's word just now, or from the log."""
        self.recorded = metadata
        self.protocol_type = metadata.protocol_type or None
        self.generation = metadata.generation
        self.protocol = metadata.protocol
        self.since_ms = metadata.since_ms
        self.state = GroupState.STABLE if metadata.members else GroupState.EMPTY
        agreed = {member.member_id: member for member in metadata.members}
        for member_id in [member_id for member_id in self.members if member_id not in agreed]:
            self.remove(member_id)
        for written in metadata.members:
            member = self._restored(written, metadata.protocol or "")
            self.assign(member, written.assignment)
        self.members = {member_id: self.members[member_id] for member_id in agreed}
        self.leader = metadata.leader
        self._find_subscribed()

    def _restored(self, written: MemberMetadata, protocol: str) -> Member:
        """The member as it is written; one that is here knows that, and more, unless all of it is from the log."""
        member = self.members.get(written.member_id)
        if member is None:
            member = Member(
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
            self.speak(member, ((protocol, written.subscription),))
        member.client_id, member.client_host = written.client_id, written.client_host
        member.rebalance_timeout_ms = written.rebalance_timeout_ms
        member.session_timeout_ms = written.session_timeout_ms
        return member

    def agreement(self, assignments: dict[str, bytes], since_ms: int) -> GroupMetadata:
        """What would be written if the members of this generation got these assignments."""
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

    def add(self, member: Member) -> None:
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self._count(member, 1)

    def remove(self, member_id: str) -> Member | None:
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

    def replace_static(self, instance_id: str, new_member_id: str) -> Member:
        """The same instance under another id, in the same place."""
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

    def speak(self, member: Member, protocols: Protocols) -> None:
        """The member can speak these from now on."""
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def assign(self, member: Member, assignment: bytes) -> None:
        self.metadata_bytes += len(assignment) - len(member.assignment)
        member.assignment = assignment

    def wait_for_others(self, member: Member, ticket: Ticket) -> Ticket | None:
        """Hold its join; the ticket of an earlier one that still waited, if there was one."""
        earlier, member.join_ticket = member.join_ticket, ticket
        if earlier is None:
            self.waiting_joins += 1
        return earlier

    def take_join_ticket(self, member: Member) -> Ticket | None:
        ticket, member.join_ticket = member.join_ticket, None
        if ticket is not None:
            self.waiting_joins -= 1
        return ticket

    def _count(self, member: Member, sign: int) -> None:
        self.metadata_bytes += sign * member.metadata_bytes()
        for name in dict.fromkeys(name for name, _ in member.protocols):
            self._speakers[name] += sign
            if not self._speakers[name]:
                del self._speakers[name]

    # Questions

    @property
    def is_void(self) -> bool:
        """Nothing of it would be missed, as far as its members go."""
        return not self.members and not self.pending and self.recorded is None and self.state is GroupState.EMPTY

    @property
    def all_joined(self) -> bool:
        return self.waiting_joins == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def member_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether whoever says so is a member of this group, and under the id that its instance has now."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def can_speak(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member that offers these finds one that all others can speak."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return self.state is GroupState.EMPTY or self.protocol_type in (None, protocol_type)
        return self.protocol_type == protocol_type and any(
            self._speakers.get(name) == len(self.members) for name, _ in protocols
        )

    def elected_protocol(self) -> str:
        """Of those that all can speak, the one that most prefer; the first of equals."""
        common = {name for name, count in self._speakers.items() if count == len(self.members)}
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes[next(name for name, _ in member.protocols if name in common)] += 1
        return votes.most_common(1)[0][0]

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """For the leader: everyone, with what it said about the protocol in use."""
        return tuple(
            JoinedMember(member.member_id, member.instance_id, member.metadata_for(self.protocol))
            for member in self.members.values()
        )

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether live consumers read the topic; if they do not say so in a way that is understood, they may."""
        if not self.uses_consumer_protocol or not self.members:
            return False
        return self._subscribed is None or topic in self._subscribed

    @property
    def subscribed(self) -> frozenset[str] | None:
        """The topics that members of the generation read; None if that is not known."""
        return self._subscribed

    def begin_generation(self) -> None:
        """Everyone that takes part is known."""
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
    for subscription in dict.fromkeys(subscriptions):  # members of a group mostly ask for the same
        topics = subscribed_topics(subscription)
        if topics is None:
            return None
        found.update(topics)
    return frozenset(found)

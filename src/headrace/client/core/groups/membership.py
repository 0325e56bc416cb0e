"""Common parts of both group protocols: settings, the member's identity, and notices for the application.

A member owns partitions from the moment the application was notified of their assignment until it was notified of their
revocation or loss; only then do they belong to another member. So a change is a queue of notices, and the protocol
continues when they are acknowledged.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from headrace.client.core.calls import Call, PendingCall
from headrace.client.errors import ClientError
from headrace.model.ids import TopicPartition

NO_GENERATION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSettings:
    group_id: str
    instance_id: str | None = None
    protocol: str = "classic"
    """classic, or consumer (KIP-848)."""

    assignors: tuple[str, ...] = ("range", "cooperative-sticky")
    """In order of preference; for classic groups."""

    server_assignor: str | None = None
    """For KIP-848 groups: uniform, range, or the broker's choice."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    poll_interval_ms_max: int = 300_000
    """An application that does not poll for this long loses its partitions; also the rebalance timeout."""

    auto_commit_interval_ms: float | None = 5_000
    """None: the application commits."""

    rack: str | None = None
    retry_pause_ms: float = 100


class NoticeKind(Enum):
    REVOKED = "revoked"
    """To be revoked; their offsets can still be committed."""

    LOST = "lost"
    """Another member may read them already; nothing can be committed."""

    ASSIGNED = "assigned"


class Notice(NamedTuple):
    kind: NoticeKind
    partitions: tuple[TopicPartition, ...]


class MemberIdentity(NamedTuple):
    """Sent with every commit, so that the coordinator can refuse former members."""

    generation: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None


class GroupMembership(Protocol):
    error: ClientError | None
    """Why the member cannot rejoin the group; every poll of the application raises it."""

    changes: "OwnershipChanges"

    def identity(self) -> MemberIdentity: ...
    def subscribe(self, topics: tuple[str, ...]) -> None: ...
    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]: ...
    def acknowledged(self, now_ms: float) -> None:
        """Continue after the notices were acknowledged."""

    def retire(self, now_ms: float) -> list[PendingCall]:
        """Leave because the application does not poll, and rejoin when it does."""

    def come_back(self, now_ms: float) -> None: ...
    def leave_call(self) -> Call | None:
        """Return the last call, when the consumer closes."""

    def fenced(self, code: int, now_ms: float) -> None:
        """Handle a refused commit: the coordinator does not know this member."""


class OwnershipChanges:
    """The partitions a member owns, and the pending notices for the application."""

    def __init__(self) -> None:
        self.owned: frozenset[TopicPartition] = frozenset()
        self._notices: deque[Notice] = deque()

    def pending(self) -> Notice | None:
        return self._notices[0] if self._notices else None

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        doomed = tuple(sorted(partitions))
        if doomed:
            self._notices.append(Notice(NoticeKind.REVOKED, doomed))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Announce an assignment, even an empty one, so that the application knows that the group is stable."""
        self._notices.append(Notice(NoticeKind.ASSIGNED, tuple(sorted(partitions))))

    def lose_all(self) -> None:
        """Announce that all partitions are lost; pending notices are dropped."""
        self._notices.clear()
        if self.owned:
            self._notices.append(Notice(NoticeKind.LOST, tuple(sorted(self.owned))))

    def acknowledge(self, notice: Notice) -> None:
        """Acknowledge the notice that was pending when its announcement began."""
        if notice.kind == NoticeKind.ASSIGNED:
            self.owned |= frozenset(notice.partitions)
        else:
            self.owned -= frozenset(notice.partitions)
        if self._notices and self._notices[0] is notice:
            self._notices.popleft()
        elif self._notices and self._notices[0].kind == NoticeKind.LOST:
            self.lose_all()  # Partitions were lost during the announcement: the lost set has changed.

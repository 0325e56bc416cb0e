"""What both group protocols have in common: settings, who we are to the coordinator, and what the application is told.

A member owns partitions from the moment the application was told that they are assigned until it was told that they
are revoked or lost; only then do they belong to somebody else. So a change is a queue of notices, and the protocol
goes on when they are acknowledged.
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
class GroupSettings:
    group_id: str
    instance_id: str | None = None
    protocol: str = "classic"
    """classic, or consumer (KIP-848)."""

    assignors: tuple[str, ...] = ("range", "cooperative-sticky")
    """By preference; of a classic group."""

    server_assignor: str | None = None
    """Of a KIP-848 group: uniform, range, or the broker's choice."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    poll_interval_ms_max: int = 300_000
    """An application that does not poll for so long has lost its partitions; also the time for a rebalance."""

    auto_commit_interval_ms: float | None = 5_000
    """None: the application commits."""

    rack: str | None = None
    retry_pause_ms: float = 100


class NoticeKind(Enum):
    REVOKED = "revoked"
    """To be given up; what was read of them can still be committed."""

    LOST = "lost"
    """Somebody else may read them already; nothing can be committed."""

    ASSIGNED = "assigned"


class Notice(NamedTuple):
    kind: NoticeKind
    partitions: tuple[TopicPartition, ...]


class MemberIdentity(NamedTuple):
    """Goes with every commit, so that the coordinator can refuse those who are members no more."""

    generation: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None


class Membership(Protocol):
    error: ClientError | None
    """Why there is no way back into the group; every poll of the application raises it."""

    changes: "OwnershipChanges"

    def identity(self) -> MemberIdentity: ...
    def subscribe(self, topics: tuple[str, ...]) -> None: ...
    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]: ...
    def acknowledged(self, now_ms: float) -> None:
        """The notices were taken in; go on."""

    def retire(self, now_ms: float) -> list[PendingCall]:
        """The application is stuck: leave, and come back when it polls."""

    def come_back(self, now_ms: float) -> None: ...
    def farewell(self) -> Call | None:
        """The last call, when the consumer closes."""

    def fenced(self, code: int, now_ms: float) -> None:
        """A commit was refused because we are not the member we think."""


class OwnershipChanges:
    """The partitions a member owns, and the notices on their way to the application."""

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
        """Told also when there are none, for the application to know that the group is settled."""
        self._notices.append(Notice(NoticeKind.ASSIGNED, tuple(sorted(partitions))))

    def lose_all(self) -> None:
        """Whatever was to be told is no longer so."""
        self._notices.clear()
        if self.owned:
            self._notices.append(Notice(NoticeKind.LOST, tuple(sorted(self.owned))))

    def acknowledge(self, notice: Notice) -> None:
        """The application was told of this one, which was pending when it began to be told."""
        if notice.kind == NoticeKind.ASSIGNED:
            self.owned |= frozenset(notice.partitions)
        else:
            self.owned -= frozenset(notice.partitions)
        if self._notices and self._notices[0] is notice:
            self._notices.popleft()
        elif self._notices and self._notices[0].kind == NoticeKind.LOST:
            self.lose_all()  # That happened while it was told: what was lost is another lot now.

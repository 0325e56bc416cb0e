"""What groups were told: who owns what, and which offsets are committed. One history a group."""

from collections.abc import Iterable

from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.checkers.violation import Violation, require

NO_OFFSET = -1
ONE_OWNER = "no partition has two owners in a generation"
COMMITTED = "committed offsets never go back or vanish"
FENCED = "who is not a member of the generation any more commits nothing"


class CommittedOffset:
    """Of one partition: what was acknowledged, and what was sent and never answered."""

    __slots__ = ("_past", "open", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self._past = [NO_OFFSET]
        """What is committed, and before it what was, or was overtaken so soon that nobody can tell whether it was."""
        self.open: list[int] = []
        """In the order of sending; whoever sends has read what was there before, so they rise."""

    @property
    def value(self) -> int:
        return self._past[-1]

    @property
    def moment(self) -> int:
        """Of a read that is asked for now: nothing that was overtaken before it may be shown."""
        return len(self._past) - 1

    def sent(self, offset: int) -> None:
        self.open.append(offset)

    def refused(self, offset: int) -> None:
        if offset in self.open:
            self.open.remove(offset)

    def acknowledged(self, offset: int) -> None:
        """The answer may be late: what was shown or acknowledged since has overtaken it."""
        if offset in self.open:
            self._settle(offset)

    def shown(self, offset: int, *, asked: int) -> None:
        """To one who asked at that moment. This answer may be late too: others may have changed it since."""
        if offset in self._past[asked:]:
            return
        if offset not in self.open:
            tries = f", sent were {self.open}" if self.open else ""
            raise Violation(COMMITTED, f"{self.what}: {offset} is shown, {self.value} was acknowledged{tries}")
        self._settle(offset)

    def _settle(self, offset: int) -> None:
        """What was sent before it is overtaken."""
        require(offset > self.value, COMMITTED, f"{self.what}: {offset} is committed, {self.value} was acknowledged")
        count = self.open.index(offset) + 1
        self._past += self.open[:count]
        del self.open[:count]


class GroupHistory:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.commits = 0
        self.generation = 0
        """The newest of the classic protocol that was told to a member with what it has."""
        self._offsets: dict[PartitionHistory, CommittedOffset] = {}
        self._owners: dict[int, dict[PartitionHistory, str]] = {}
        self._holders: dict[PartitionHistory, tuple[str, float]] = {}
        """Members of the consumer protocol, and since when they know that they have it."""

    def offset(self, partition: PartitionHistory) -> CommittedOffset:
        found = self._offsets.get(partition)
        if found is None:
            found = self._offsets[partition] = CommittedOffset(f"{partition} in {self.group_id}")
        return found

    def offsets(self) -> list[tuple[PartitionHistory, CommittedOffset]]:
        return list(self._offsets.items())

    def assigned(self, generation: int, member: str, partitions: list[PartitionHistory]) -> None:
        """A member of the classic protocol was told what it has in a generation."""
        self.generation = max(self.generation, generation)
        owners = self._owners.setdefault(generation, {})
        for partition in partitions:
            owner = owners.setdefault(partition, member)
            if owner != member:
                detail = f"{partition} belongs to {owner} and to {member} in generation {generation} of {self.group_id}"
                raise Violation(ONE_OWNER, detail)

    def holds(self, member: str, partition: PartitionHistory, now_ms: float) -> None:
        """A member of the consumer protocol learns that it has a partition."""
        if partition not in self._holders or self._holders[partition][0] != member:
            self._holders[partition] = (member, now_ms)

    def let_go(self, member: str, partition: PartitionHistory) -> None:
        if self._holders.get(partition, ("", 0.0))[0] == member:
            del self._holders[partition]

    def are_held(self, partitions: Iterable[PartitionHistory]) -> bool:
        """Whether each has a member of the consumer protocol that knows of it."""
        return all(partition in self._holders for partition in partitions)

    def confirmed(self, member: str, partitions: list[PartitionHistory], asked_ms: float) -> None:
        """The coordinator accepts one who asked at that time as a member that has these."""
        for partition in partitions:
            holder, since_ms = self._holders.get(partition, (member, 0.0))
            taken = holder != member and since_ms < asked_ms
            require(not taken, ONE_OWNER, f"{partition} belongs to {member} and to {holder} of {self.group_id}")

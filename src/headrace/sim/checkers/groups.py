"""The history of a group: the owners of partitions and the committed offsets, as its clients have seen them."""

from collections.abc import Iterable

from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.checkers.violation import Violation, require

NO_OFFSET = -1
ONE_OWNER = "no partition has two owners in a generation"
COMMITTED = "committed offsets never go back or vanish"
FENCED = "a former member of the generation commits nothing"


class CommittedOffsetHistory:
    """The history of one partition: acknowledged offsets, and those sent without a response."""

    __slots__ = ("_past", "open", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self._past = [NO_OFFSET]
        """The committed offsets, and earlier ones that may have been committed or were overtaken before anyone could
        see them.
        """
        self.open: list[int] = []
        """In the order of sending; a sender has read the previous offset, so they ascend."""

    @property
    def value(self) -> int:
        return self._past[-1]

    @property
    def moment(self) -> int:
        """Return the moment at which a read is requested: it must not return an offset that was overtaken before."""
        return len(self._past) - 1

    def sent(self, offset: int) -> None:
        self.open.append(offset)

    def refused(self, offset: int) -> None:
        if offset in self.open:
            self.open.remove(offset)

    def acknowledged(self, offset: int) -> None:
        """Note an acknowledgement. It may be late: offsets shown or acknowledged since have overtaken it."""
        if offset in self.open:
            self._settle(offset)

    def shown(self, offset: int, *, asked: int) -> None:
        """Check an offset that was read at that moment. The response may be late too: others may have changed it
        since.
        """
        if offset in self._past[asked:]:
            return
        if offset not in self.open:
            tries = f", sent were {self.open}" if self.open else ""
            raise Violation(COMMITTED, f"{self.what}: {offset} is shown, but {self.value} was acknowledged{tries}")
        self._settle(offset)

    def _settle(self, offset: int) -> None:
        """Note that offsets sent before it are overtaken."""
        require(
            offset > self.value, COMMITTED, f"{self.what}: {offset} is committed, but {self.value} was acknowledged"
        )
        count = self.open.index(offset) + 1
        self._past += self.open[:count]
        del self.open[:count]


class GroupHistory:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.commits = 0
        self.generation = 0
        """The newest generation of the classic protocol in which a member received its assignment."""
        self._offsets: dict[PartitionHistory, CommittedOffsetHistory] = {}
        self._owners: dict[int, dict[PartitionHistory, str]] = {}
        self._holders: dict[PartitionHistory, tuple[str, float]] = {}
        """Members of the consumer protocol, and since when they know their assignment."""

    def offset(self, partition: PartitionHistory) -> CommittedOffsetHistory:
        found = self._offsets.get(partition)
        if found is None:
            found = self._offsets[partition] = CommittedOffsetHistory(f"{partition} in {self.group_id}")
        return found

    def offsets(self) -> list[tuple[PartitionHistory, CommittedOffsetHistory]]:
        return list(self._offsets.items())

    def assigned(self, generation: int, member: str, partitions: list[PartitionHistory]) -> None:
        """Note the assignment that a member of the classic protocol received in a generation."""
        self.generation = max(self.generation, generation)
        owners = self._owners.setdefault(generation, {})
        for partition in partitions:
            owner = owners.setdefault(partition, member)
            if owner != member:
                detail = f"{partition} belongs to {owner} and to {member} in generation {generation} of {self.group_id}"
                raise Violation(ONE_OWNER, detail)

    def holds(self, member: str, partition: PartitionHistory, now_ms: float) -> None:
        """Note that a member of the consumer protocol learns that it owns a partition."""
        if partition not in self._holders or self._holders[partition][0] != member:
            self._holders[partition] = (member, now_ms)

    def let_go(self, member: str, partition: PartitionHistory) -> None:
        if self._holders.get(partition, ("", 0.0))[0] == member:
            del self._holders[partition]

    def are_held(self, partitions: Iterable[PartitionHistory]) -> bool:
        """Return whether each partition has an owner of the consumer protocol that knows it."""
        return all(partition in self._holders for partition in partitions)

    def confirmed(self, member: str, partitions: list[PartitionHistory], asked_ms: float) -> None:
        """Note that the coordinator confirmed a member that asked at that time as the owner of these."""
        for partition in partitions:
            holder, since_ms = self._holders.get(partition, (member, 0.0))
            taken = holder != member and since_ms < asked_ms
            require(not taken, ONE_OWNER, f"{partition} belongs to {member} and to {holder} of {self.group_id}")

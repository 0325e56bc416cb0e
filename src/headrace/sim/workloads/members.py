"""The common part of members of both protocols: read the committed offsets, advance, commit, and sometimes come too
late.
"""

from collections.abc import Sequence
from typing import Any

from headrace.model.errors import ErrorCode
from headrace.sim.checkers.groups import FENCED, GroupHistory
from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.context import RunContext
from headrace.sim.workloads import group_requests as requests
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.producers import HONEST_ERRORS
from headrace.wire.apis import ApiKey

PACE_MS_MAX = 150
RETRY_MS_MAX = 400
STEP_OFFSETS_MAX = 20
ZOMBIE_ONE_IN = 3
SLEEP_ONE_IN, SLEEP_MS_MAX = 120, 3 * requests.SESSION_TIMEOUT_MS
COMMIT_LOST = "coordinator's commit lost"

RETRIED_ERRORS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Errors that any member may get at any time; its request may have been executed."""
STALE = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


class GroupClient(Client):
    """One request at a time. A subclass defines how it joins and stays a member."""

    def __init__(
        self, context: RunContext, name: str, group: GroupHistory, targets: Sequence[PartitionHistory]
    ) -> None:
        super().__init__(context, name)
        self.group = group
        self.targets = targets
        self.member_id = ""
        self.instance_id: str | None = None
        self.epoch = 0
        self.positions: dict[PartitionHistory, int | None] = {}
        """Its partitions and positions; None before it has looked them up."""
        self._waits = False
        self._next_ms = 0.0
        self._asleep_until_ms = 0.0
        self._former: tuple[str, int, PartitionHistory] | None = None
        """An identity that it has lost, and a partition it owned then."""
        self.hurries = False
        """No member leaves any more."""
        self._progress = 0
        self._progress_before = 0

    # For subclasses

    def keep_membership(self) -> bool:
        """Send what keeps or makes it a member, if due; return whether a request was sent."""
        raise NotImplementedError

    def fenced(self, error: ErrorCode) -> None:
        """Handle the response that it is no longer a member."""
        raise NotImplementedError

    def is_over(self, epoch: int) -> bool:
        """Return whether no start can restore that epoch."""
        raise NotImplementedError

    # The client

    def lost(self) -> None:
        self._waits = False

    @property
    def settled(self) -> bool:
        return not self._waits

    def hurry(self) -> None:
        self.hurries = True
        self._progress_before = self._progress
        self._asleep_until_ms = 0.0

    def has_progressed(self) -> bool:
        return self._progress > self._progress_before

    def progressed(self) -> None:
        self._progress += 1

    def work(self) -> None:
        if self._waits or self.stopped or self.now_ms < self._asleep_until_ms or self.now_ms < self._next_ms:
            return
        if self.keep_membership():
            return
        if self._former is not None and self.is_over(self._former[1]) and self.entropy.one_in(ZOMBIE_ONE_IN):
            self._commit_as_a_zombie(*self._former)
            return
        unknown = [partition for partition, position in self.positions.items() if position is None]
        if unknown:
            self._ask_for(unknown)
        elif self.positions:
            self._commit()
        self._next_ms = max(self._next_ms, self.now_ms + self.entropy.below(PACE_MS_MAX))
        if not self.hurries and self.entropy.one_in(SLEEP_ONE_IN):
            self._asleep_until_ms = self.now_ms + self.entropy.below(SLEEP_MS_MAX)

    def request(self, api_key: ApiKey, version: int, message: object, handle: Any) -> None:
        self._waits = True

        def answered(response: Any) -> None:
            self._waits = False
            handle(response)

        self.ask(api_key, version, message, answered)

    def wait(self) -> None:
        self._next_ms = self.now_ms + self.entropy.below(RETRY_MS_MAX)

    def place(self, partition: PartitionHistory) -> requests.Place:
        return (partition.topic.name, partition.index)

    def remember_former(self) -> None:
        """Remember a former identity: once its end is written, nothing may be committed in its name."""
        if self.positions and self.member_id:
            self._former = (self.member_id, self.epoch, next(iter(self.positions)))

    # Offsets

    def _ask_for(self, partitions: list[PartitionHistory]) -> None:
        by_place = {self.place(partition): partition for partition in partitions}
        asked = {partition: self.group.offset(partition).moment for partition in partitions}

        def found(response: Any) -> None:
            group = response.groups[0]
            if group.error_code:
                self._refused(ErrorCode(group.error_code))
                return
            for topic in group.topics:
                for part in topic.partitions:
                    partition = by_place[topic.name, part.partition_index]
                    if part.error_code:
                        self._refused(ErrorCode(part.error_code))
                    else:
                        self.group.offset(partition).shown(part.committed_offset, asked=asked[partition])
                        if partition in self.positions:
                            self.positions[partition] = max(part.committed_offset, 0)

        message = requests.committed(self.group.group_id, list(by_place), stable=True)
        self.request(ApiKey.OFFSET_FETCH, requests.OFFSET_FETCH, message, found)

    def _commit(self) -> None:
        owned = list(self.positions)
        partition = owned[self.entropy.below(len(owned))]
        position = self.positions[partition]
        assert position is not None
        offset = position + 1 + self.entropy.below(STEP_OFFSETS_MAX)
        self.positions[partition] = offset
        truth = self.group.offset(partition)
        truth.sent(offset)

        def answered(response: Any) -> None:
            error = ErrorCode(response.topics[0].partitions[0].error_code)
            if error is ErrorCode.NONE:
                truth.acknowledged(offset)
                self.group.commits += 1
                self.progressed()
                return
            if error not in RETRIED_ERRORS:
                truth.refused(offset)
            self._refused(error)

        message = requests.commit(
            self.group.group_id, self.epoch, self.member_id, self.instance_id, [(self.place(partition), offset)]
        )
        self.request(ApiKey.OFFSET_COMMIT, requests.OFFSET_COMMIT, message, answered)

    def _commit_as_a_zombie(self, member_id: str, epoch: int, partition: PartitionHistory) -> None:
        self._former = None
        offset = max(self.group.offset(partition).value, 0)

        def answered(response: Any) -> None:
            error = ErrorCode(response.topics[0].partitions[0].error_code)
            if error is ErrorCode.NONE:
                raise Violation(FENCED, f"{partition} of {self.group.group_id}: {self.name} committed in epoch {epoch}")
            require(error in (*STALE, *RETRIED_ERRORS), HONEST_ERRORS, f"{error.name} for a commit of a former member")

        message = requests.commit(self.group.group_id, epoch, member_id, None, [(self.place(partition), offset)])
        self.request(ApiKey.OFFSET_COMMIT, requests.OFFSET_COMMIT, message, answered)

    def _refused(self, error: ErrorCode) -> None:
        self.wait()
        if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.context.world.trace.count_fault(COMMIT_LOST)
        if error in RETRIED_ERRORS:
            return
        require(
            error in STALE or error is ErrorCode.REBALANCE_IN_PROGRESS,
            HONEST_ERRORS,
            f"{error.name} for {self.name} of {self.group.group_id}",
        )
        self.fenced(error)

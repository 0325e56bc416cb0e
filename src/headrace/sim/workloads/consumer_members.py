"""Members of the consumer protocol (KIP-848): the broker assigns, and a heartbeat reports and confirms."""

from collections.abc import Sequence
from typing import Any

from headrace.model.errors import ErrorCode
from headrace.sim.checkers.groups import GroupHistory
from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.context import RunContext
from headrace.sim.workloads import group_requests as requests
from headrace.sim.workloads.members import GroupClient
from headrace.wire.apis import ApiKey

HEARTBEAT_MS = 500
LEAVE_ONE_IN = 90
NOT_JOINED = 0


class ConsumerGroupClient(GroupClient):
    def __init__(
        self,
        context: RunContext,
        name: str,
        group: GroupHistory,
        targets: Sequence[PartitionHistory],
        topics: Sequence[str],
    ) -> None:
        super().__init__(context, name, group, targets)
        self._topics = topics
        self._heartbeat_ms = 0.0
        self._become_another()

    def _become_another(self) -> None:
        self.member_id = self.entropy.random_bytes(16).hex()
        self.epoch = NOT_JOINED

    def fenced(self, error: ErrorCode) -> None:
        if error is ErrorCode.STALE_MEMBER_EPOCH:
            self._heartbeat_ms = 0.0  # a heartbeat brings the new one
            return
        self.remember_former()
        self._let_go_of(list(self.positions))
        self.epoch = NOT_JOINED

    def _let_go_of(self, partitions: list[PartitionHistory]) -> None:
        for partition in partitions:
            del self.positions[partition]
            self.group.let_go(self.name, partition)

    def is_over(self, epoch: int) -> bool:
        return True  # every change is written before it is announced

    def has_progressed(self) -> bool:
        """Return progress: a partition that no member believes it owns is not read, whatever the broker believes."""
        return super().has_progressed() and self.group.are_held(self.targets)

    def keep_membership(self) -> bool:
        if self.epoch == NOT_JOINED or self.now_ms >= self._heartbeat_ms:
            self._heartbeat()
        elif not self.hurries and self.entropy.one_in(LEAVE_ONE_IN):
            self._leave()
        else:
            return False
        return True

    def _owned(self) -> list[tuple[Any, list[int]]]:
        owned: dict[Any, list[int]] = {}
        for partition in self.positions:
            owned.setdefault(partition.topic.topic_id, []).append(partition.index)
        return list(owned.items())

    def _heartbeat(self) -> None:
        self._heartbeat_ms = self.now_ms + HEARTBEAT_MS
        asked_ms, joins, had = self.now_ms, self.epoch == NOT_JOINED, list(self.positions)

        def answered(response: Any) -> None:
            error = ErrorCode(response.error_code)
            if error is not ErrorCode.NONE:
                self._refused(error)
                return
            if self.now_ms - asked_ms >= requests.SESSION_TIMEOUT_MS:
                self._heartbeat_ms = 0.0  # it may have been revoked since: requests of clients time out before that
                return
            if not joins:
                self.group.confirmed(self.name, had, asked_ms)
            if response.member_epoch != self.epoch:
                self.remember_former()
                self.epoch = response.member_epoch
            if response.assignment is not None:
                self._take_over(response.assignment)
            if not self.positions:
                self.progressed()  # there are more members than partitions

        topics = self._topics if joins else None
        message = requests.consumer_alive(self.group.group_id, self.member_id, self.epoch, self._owned(), topics)
        self.request(ApiKey.CONSUMER_GROUP_HEARTBEAT, requests.CONSUMER_GROUP_HEARTBEAT, message, answered)

    def _take_over(self, assignment: Any) -> None:
        wanted = {(topic.topic_id, index) for topic in assignment.topic_partitions for index in topic.partitions}
        known = {(partition.topic.topic_id, partition.index): partition for partition in self.targets}
        # The others may not know a member that was just created.
        given = {known[place] for place in wanted if place in known}
        if given == self.positions.keys():
            return
        self._let_go_of([partition for partition in self.positions if partition not in given])
        for partition in sorted(given - self.positions.keys(), key=lambda each: (each.topic.topic_id, each.index)):
            self.positions[partition] = None
            self.group.holds(self.name, partition, self.now_ms)
        self._heartbeat_ms = self.now_ms  # to confirm it

    def _leave(self) -> None:
        def answered(response: Any) -> None:
            error = ErrorCode(response.error_code)
            if error is not ErrorCode.NONE:
                self._refused(error)
                return
            self.remember_former()
            self._let_go_of(list(self.positions))
            self._become_another()
            self.wait()

        message = requests.consumer_alive(self.group.group_id, self.member_id, requests.LEAVING_EPOCH, (), None)
        self.request(ApiKey.CONSUMER_GROUP_HEARTBEAT, requests.CONSUMER_GROUP_HEARTBEAT, message, answered)

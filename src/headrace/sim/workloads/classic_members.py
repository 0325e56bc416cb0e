"""Members of the classic protocol: they join, the leader assigns, they send heartbeats and leave."""

from collections.abc import Sequence
from typing import Any

from headrace.model.errors import ErrorCode
from headrace.sim.checkers.groups import GroupHistory
from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.checkers.violation import require
from headrace.sim.context import RunContext
from headrace.sim.workloads import group_requests as requests
from headrace.sim.workloads.members import RETRIED_ERRORS, STALE, GroupClient
from headrace.sim.workloads.producers import HONEST_ERRORS
from headrace.wire.apis import ApiKey

HEARTBEAT_MS = 800
LEAVE_ONE_IN = 90


class ClassicGroupClient(GroupClient):
    """Static with `instance_id`: after a restart it rejoins as the same member."""

    def __init__(
        self,
        context: RunContext,
        name: str,
        group: GroupHistory,
        targets: Sequence[PartitionHistory],
        *,
        instance_id: str | None,
    ) -> None:
        super().__init__(context, name, group, targets)
        self.instance_id = instance_id
        self._is_member = False
        self._heartbeat_ms = 0.0

    def lost(self) -> None:
        super().lost()
        if self.instance_id is not None and self.entropy.one_in(4):
            self.member_id = ""  # the process was restarted
            self._is_member = False

    def fenced(self, error: ErrorCode) -> None:
        if error is not ErrorCode.REBALANCE_IN_PROGRESS:
            self.remember_former()
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
        self._is_member = False
        if error is not ErrorCode.REBALANCE_IN_PROGRESS:
            self.positions.clear()

    def is_over(self, epoch: int) -> bool:
        """Return whether the generation is over. It is written after the leader has assigned; until then a start
        restores the previous one.
        """
        return self.group.generation > epoch

    def keep_membership(self) -> bool:
        if not self._is_member:
            self._join()
        elif self.now_ms >= self._heartbeat_ms:
            self._heartbeat()
        elif self.instance_id is None and self.entropy.one_in(LEAVE_ONE_IN):
            self._leave()
        else:
            return False
        return True

    # Joining

    def _join(self) -> None:
        message = requests.joining(self.group.group_id, self.member_id, self.instance_id)
        self.request(ApiKey.JOIN_GROUP, requests.JOIN_GROUP, message, self._joined)

    def _joined(self, response: Any) -> None:
        error = ErrorCode(response.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return
        if error is not ErrorCode.NONE:
            self._refused(error)
            return
        if response.generation_id != self.epoch:
            self.remember_former()
        self.member_id, self.epoch = response.member_id, response.generation_id
        self.positions.clear()
        assignments = []
        if response.leader == self.member_id and not response.skip_assignment:
            assignments = self._shared_out([member.member_id for member in response.members])
        message = requests.syncing(self.group.group_id, self.epoch, self.member_id, self.instance_id, assignments)
        self.request(ApiKey.SYNC_GROUP, requests.SYNC_GROUP, message, self._synced)

    def _shared_out(self, member_ids: list[str]) -> list[tuple[str, bytes]]:
        shares: list[list[str]] = [[] for _ in member_ids]
        for number, partition in enumerate(self.targets):
            shares[number % len(shares)].append(str(partition))
        return [(member_id, ",".join(share).encode()) for member_id, share in zip(member_ids, shares, strict=True)]

    def _synced(self, response: Any) -> None:
        error = ErrorCode(response.error_code)
        if error is not ErrorCode.NONE:
            self._refused(error)
            return
        known = {str(partition): partition for partition in self.targets}
        owned = [known[name] for name in response.assignment.decode().split(",") if name]
        self.group.assigned(self.epoch, self.name, owned)
        self.positions = dict.fromkeys(owned)
        self._is_member = True
        self._heartbeat_ms = self.now_ms + self.entropy.below(HEARTBEAT_MS)

    # Staying and leaving

    def _heartbeat(self) -> None:
        self._heartbeat_ms = self.now_ms + HEARTBEAT_MS

        def answered(response: Any) -> None:
            error = ErrorCode(response.error_code)
            if error is not ErrorCode.NONE:
                self._refused(error)
            elif not self.positions:
                self.progressed()  # there are more members than partitions

        message = requests.alive(self.group.group_id, self.epoch, self.member_id, self.instance_id)
        self.request(ApiKey.HEARTBEAT, requests.HEARTBEAT, message, answered)

    def _leave(self) -> None:
        def answered(response: Any) -> None:
            error = ErrorCode(response.error_code or response.members[0].error_code)
            if error is ErrorCode.NONE:
                self.remember_former()
            else:
                require(error in (*STALE, *RETRIED_ERRORS), HONEST_ERRORS, f"{error.name} for {self.name}, who leaves")
            self.member_id = ""
            self._is_member = False
            self.positions.clear()
            self.wait()

        message = requests.leaving(self.group.group_id, self.member_id, self.instance_id)
        self.request(ApiKey.LEAVE_GROUP, requests.LEAVE_GROUP, message, answered)

"""Find the coordinator of a group or a transactional id, remember it, and find it again when it has moved."""

from enum import IntEnum
from typing import Any

from headrace.client.core.calls import Call, Operation, Pause, PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BrokerError, ClientError
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.wire.messages import find_coordinator

COORDINATOR_CHANNEL = 1
"""Coordinators have their own connections: a fetch that waits for records would delay the requests behind it."""

COORDINATOR_ATTEMPTS_MAX = 100
MOVED_ERRORS = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
"""Errors after which the coordinator is looked up again."""


class CoordinatorKind(IntEnum):
    """The values are those of the wire protocol."""

    GROUP = 0
    TRANSACTION = 1


class Coordinator:
    def __init__(self, kind: CoordinatorKind, key: str, cluster: Cluster, *, retry_pause_ms: float) -> None:
        self.node: int | None = None
        self.trouble: ClientError | None = None
        """Why the last lookup failed; used in messages, and fatal if it is not retriable."""
        self.trouble_since_ms = 0.0
        self._kind = kind
        self._key = key
        self._cluster = cluster
        self._retry_pause_ms = retry_pause_ms
        self._due_ms: float | None = 0.0
        """When to look it up; None while a response is awaited."""

    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]:
        if self.node is not None or self._due_ms is None:
            return [], float("inf")
        if self._due_ms > now_ms:
            return [], self._due_ms
        self._due_ms = None
        return [PendingCall(self._call(), self._answered)], float("inf")

    def lost(self, node: int, now_ms: float) -> None:
        """Forget the coordinator: the broker is not (or no longer) the coordinator, or cannot be reached."""
        if self.node == node:
            self.node = None
            self._due_ms = now_ms + self._retry_pause_ms

    def find(self) -> Operation[int]:
        """Return the node, as part of another operation."""
        for _ in range(COORDINATOR_ATTEMPTS_MAX):
            if self.node is not None:
                return self.node
            (reply,) = yield (self._call(),)
            self._take(reply)
            if self.node is None:
                assert self.trouble is not None
                if not self._may_retry():
                    raise self.trouble
                yield Pause(self._retry_pause_ms)
        raise self.trouble or BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, self._what())

    def has_failed(self) -> bool:
        return self.trouble is not None and not self._may_retry()

    def _call(self) -> Call:
        request = find_coordinator.FindCoordinatorRequest(
            key=self._key, key_type=self._kind, coordinator_keys=(self._key,)
        )
        return Call(find_coordinator, request, min_version=1 if self._kind == CoordinatorKind.TRANSACTION else 0)

    def _answered(self, reply: Any, now_ms: float) -> None:
        if self.trouble is None:
            self.trouble_since_ms = now_ms
        self._take(reply)
        if self.node is None:
            self._due_ms = now_ms + self._retry_pause_ms

    def _take(self, reply: Any) -> None:
        if isinstance(reply, ClientError):
            self.trouble = reply
            return
        result = reply.coordinators[0] if reply.coordinators else reply
        if result.error_code:
            self.trouble = BrokerError(result.error_code, self._what(), result.error_message)
            return
        self._cluster.learn_endpoints((result,))
        self.node, self.trouble, self._due_ms = result.node_id, None, 0.0

    def _may_retry(self) -> bool:
        return not isinstance(self.trouble, BrokerError) or self.trouble.code in RETRIABLE

    def _what(self) -> str:
        return (
            f'{"group" if self._kind == CoordinatorKind.GROUP else "transactional id"} "{self._key}" has no coordinator'
        )

"""Producer ids for the clients of this broker, taken from blocks that the controller allocates.

The next block is requested before the current one is used up, so that producers need not wait for the controller and
can still be created for a while when there is none. An id that was in memory when the broker stopped is never used.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.timers import Timers
from headrace.core.controller.commands import PRODUCER_IDS_PER_BLOCK, ProducerIdBlock
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, ProducerId

WAITING_MAX = 10_000
"""Requests that wait for the next block."""

IDS_LEFT_MIN = PRODUCER_IDS_PER_BLOCK // 4
"""Ids that are left when the next block is requested."""

BLOCK_RETRY_MS = 500
"""The pause after a failed request for a block, for example during a change of the controller."""

Given = Callable[[ProducerId | ProposalFailed], None]


class BlockAllocator(Protocol):
    """The controller, on this node or reached through the network."""

    def allocate_producer_ids(self, node_id: NodeId) -> Proposal[ProducerIdBlock]: ...


class ProducerIds:
    def __init__(self, controller: BlockAllocator, node_id: NodeId, timers: Timers) -> None:
        self._controller = controller
        self._node_id = node_id
        self._timers = timers
        self._next = ProducerId(0)
        self._end = ProducerId(0)
        self._following: ProducerIdBlock | None = None
        """The block after the current one."""
        self._requested = False
        """True while a block is requested, or will be after a pause."""
        self._waiting: deque[Given] = deque()

    def take(self) -> ProducerId | None:
        """Return a new id, or None when no block is left: call `wait` then."""
        if self._next >= self._end:
            if self._following is None:
                return None
            (self._next, self._end), self._following = self._following, None
        taken = self._next
        self._next = ProducerId(taken + 1)
        if self._following is None and self._end - self._next <= IDS_LEFT_MIN and not self._requested:
            self._request()
        return taken

    def wait(self, callback: Given) -> None:
        """Call back with a new id in a later turn, from the next block."""
        self._waiting.append(callback)
        if not self._requested:
            self._request()

    def give(self, callback: Given) -> None:
        """Call back with a new id, at once if there is one."""
        taken = self.take()
        if taken is None:
            self.wait(callback)
        else:
            callback(taken)

    @property
    def overloaded(self) -> bool:
        return len(self._waiting) >= WAITING_MAX

    def _request(self) -> None:
        self._requested = True
        self._controller.allocate_producer_ids(self._node_id).then(self._answered)

    def _answered(self, outcome: ProducerIdBlock | ProposalFailed) -> None:
        waiting, self._waiting = self._waiting, deque()
        if isinstance(outcome, ProposalFailed):
            self._timers.after(BLOCK_RETRY_MS, self._request)
            for callback in waiting:
                callback(ProposalFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE, outcome.message))
            return
        self._requested = False
        self._following = outcome
        for callback in waiting:
            self.give(callback)

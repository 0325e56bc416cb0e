"""Producer ids for the clients of this broker, taken from blocks that the controller allocates."""

from collections import deque
from collections.abc import Callable

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import ProducerIdBlock
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, ProducerId

WAITING_MAX = 10_000


class ProducerIds:
    def __init__(self, host: ControllerHost, node_id: NodeId) -> None:
        self._host = host
        self._node_id = node_id
        self._next = ProducerId(0)
        self._end = ProducerId(0)
        self._waiting: deque[Callable[[ProducerId | ProposalFailed], None]] = deque()

    def take(self) -> ProducerId | None:
        """Return a new id, or None when the block is used up: call `wait` then."""
        if self._next >= self._end:
            return None
        taken = self._next
        self._next = ProducerId(taken + 1)
        return taken

    def wait(self, callback: Callable[[ProducerId | ProposalFailed], None]) -> None:
        """Call back with a new id in a later turn, from the next block."""
        self._waiting.append(callback)
        if len(self._waiting) == 1:
            self._host.allocate_producer_ids(self._node_id).then(self._block_given)

    def give(self, callback: Callable[[ProducerId | ProposalFailed], None]) -> None:
        """Call back with a new id, at once if there is one."""
        taken = self.take()
        if taken is None:
            self.wait(callback)
        else:
            callback(taken)

    @property
    def overloaded(self) -> bool:
        return len(self._waiting) >= WAITING_MAX

    def _block_given(self, outcome: ProducerIdBlock | ProposalFailed) -> None:
        waiting, self._waiting = self._waiting, deque()
        if isinstance(outcome, ProposalFailed):
            for callback in waiting:
                callback(ProposalFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE, outcome.message))
            return
        self._next, self._end = outcome
        for callback in waiting:
            self.give(callback)

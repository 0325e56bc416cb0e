"""Reads that must show every change acknowledged before them: the active controller confirms that they may be served.

The active controller makes sure that it still is the active one (ReadIndex) and names the offset of its committed
metadata; this node answers from its own image when that has reached the offset. Reads that arrive while a request is
under way share the next one.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.peers.requests import PeerRequests
from headrace.broker.timers import Timers
from headrace.core.raft.effects import Outcome, ReadAllowed
from headrace.core.raft.settings import READS_PENDING_MAX
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.model.limits import FORWARD_RETRY_MS, FORWARD_WAIT_MS
from headrace.ports.spawner import call_all
from headrace.wire.apis import ApiKey

if TYPE_CHECKING:
    from headrace.broker.cluster.controller_host import ControllerHost

Confirmed = Callable[[bool], None]
"""Called with True when the read may be served from the image; with False if no controller confirmed it in time."""


class _Read:
    """A read that waits for the controller, or for the image of this node."""

    __slots__ = ("_then", "_timer", "_timers", "is_over")

    def __init__(self, timers: Timers, then: Confirmed) -> None:
        self._timers = timers
        self._timer = timers.after(FORWARD_WAIT_MS, lambda: self.end(False))
        self._then = then
        self.is_over = False

    def end(self, is_confirmed: bool) -> None:
        if not self.is_over:
            self.is_over = True
            self._timers.cancel(self._timer)
            self._then(is_confirmed)


class LinearizableReads:
    def __init__(self, controller: "ControllerHost", *, node_id: NodeId, peers: PeerRequests, timers: Timers) -> None:
        self._controller = controller
        self._node_id = node_id
        self._peers = peers
        self._timers = timers
        self._waiting: list[_Read] = []
        self._is_asking = False
        """True while a request is under way, or about to be repeated."""

    def confirm(self, then: Confirmed) -> None:
        """Call back when the image has every change that was acknowledged before this call."""
        if len(self._waiting) >= READS_PENDING_MAX:
            self._timers.next_turn(lambda: then(False))
            return
        self._waiting.append(_Read(self._timers, then))
        if not self._is_asking:
            self._ask()

    def _ask(self) -> None:
        reads = self._waiting = [read for read in self._waiting if not read.is_over]
        self._is_asking = bool(reads)
        if not reads:
            return
        self._waiting = []
        leader = self._controller.active_controller
        if self._controller.is_active:
            self._controller.quorum.read(partial(self._read_here, reads))
        elif leader is None or leader == self._node_id:
            self._retry(reads)
        else:
            from headrace.wire.messages.read_index import ReadIndexRequest  # a single node needs none

            self._peers.send(
                leader,
                ApiKey.READ_INDEX,
                0,
                ReadIndexRequest(),
                timeout_ms=FORWARD_WAIT_MS,
                then=partial(self._answered, reads),
            )

    def _read_here(self, reads: list[_Read], outcome: Outcome) -> None:
        if isinstance(outcome, ReadAllowed):
            self._allowed(reads, outcome.index)
        else:
            self._retry(reads)

    def _answered(self, reads: list[_Read], outcome: object) -> None:
        from headrace.wire.messages.read_index import ReadIndexResponse

        if isinstance(outcome, ReadIndexResponse) and outcome.error_code == ErrorCode.NONE:
            self._allowed(reads, outcome.metadata_offset)
        else:
            self._retry(reads)

    def _retry(self, reads: list[_Read]) -> None:
        """Ask again later: the controller is not known, has moved, or did not answer."""
        self._waiting = [*reads, *self._waiting]
        self._timers.after(FORWARD_RETRY_MS, self._ask)

    def _allowed(self, reads: list[_Read], offset: int) -> None:
        self._ask()
        self._controller.when_applied(offset, lambda: call_all([partial(read.end, True) for read in reads]))

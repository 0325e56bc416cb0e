"""Asks the active controller to change the in-sync sets of partitions that this broker leads.

Changes of one turn travel in one request, and one request is under way at a time. A request that fails is sent again
until a controller has responded: until then its outcome is unknown, and the leaders count with both sets. A newer
change of a partition replaces one that waits.
"""

from collections.abc import Callable
from functools import partial
from itertools import islice

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.peers.requests import PeerRequests
from headrace.broker.timers import Timers
from headrace.core.controller.commands import IsrAlteration, IsrChange, IsrResult, IsrResults
from headrace.model.ids import NodeId, TopicId
from headrace.wire.apis import ApiKey

ALTER_PARTITION_VERSION = 3

CHANGES_PER_REQUEST_MAX = 1_000
"""Partitions of one request; further ones wait for its response."""

REQUEST_TIMEOUT_MS = 2_000
RETRY_MS = 100

Then = Callable[[IsrResult], None]
_Changes = dict[tuple[TopicId, int], tuple[IsrChange, Then]]


class IsrRequests:
    def __init__(
        self,
        *,
        node_id: NodeId,
        broker_epoch: Callable[[], int],
        controller: ControllerHost,
        peers: PeerRequests,
        timers: Timers,
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._peers = peers
        self._timers = timers
        self._waiting: _Changes = {}
        """At most one change of each partition that this broker leads."""
        self._is_busy = False
        """True while a request is under way, or about to be sent."""

    def alter(self, change: IsrChange, then: Then) -> None:
        """Ask for a change; `then` gets its result in a later turn, unless a newer change takes its place before."""
        self._waiting[change.topic_id, change.partition] = (change, then)
        if not self._is_busy:
            self._is_busy = True
            self._timers.next_turn(self._send)

    def _send(self) -> None:
        changes = dict(islice(self._waiting.items(), CHANGES_PER_REQUEST_MAX))
        if not changes or self._controller.offline is not None:
            self._is_busy = False
            return
        for key in changes:
            del self._waiting[key]
        alteration = IsrAlteration(
            node_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            changes=[change for change, _then in changes.values()],
        )
        active = self._controller.active_controller
        if active is None or active == self._node_id:
            self._controller.alter_isrs(alteration).then(partial(self._answered, changes))
            return
        from headrace.broker.cluster import isr_messages as messages  # a single node starts without it

        self._peers.send(
            active,
            ApiKey.ALTER_PARTITION,
            ALTER_PARTITION_VERSION,
            messages.alteration_request(alteration),
            timeout_ms=REQUEST_TIMEOUT_MS,
            then=lambda response: self._answered(changes, messages.alteration_results(response)),
        )

    def _answered(self, changes: _Changes, outcome: IsrResults | ProposalFailed) -> None:
        if isinstance(outcome, ProposalFailed):
            self._waiting = changes | self._waiting  # newer changes replace these
            self._timers.after(RETRY_MS, self._send)
            return
        results = {(result.topic_id, result.partition): result for result in outcome.results}
        self._timers.next_turn(self._send)
        for key, (_change, then) in changes.items():
            then(results.get(key) or IsrResult(*key, outcome.error, outcome.message))

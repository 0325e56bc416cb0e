"""Requests for the active controller, sent to it from another node and sent again while the controller moves.

A response is passed on when this node's image has applied the changes that it reports, so that a client which then
asks this node sees them. A request whose connection breaks is sent again, as Kafka's brokers do: its outcome is not
known, and all of these requests can be repeated without another effect.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.broker.peers.requests import PeerFailure, PeerRequests
from headrace.broker.timers import Timer, Timers
from headrace.core.controller.commands import CreatableTopic
from headrace.model.access import node_principal
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.model.limits import FORWARD_RETRY_MS, FORWARD_WAIT_MS, FORWARDS_MAX
from headrace.wire.apis import ApiKey, codec
from headrace.wire.frames import SIZE_BYTES, request_frame
from headrace.wire.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsRequestAssignment,
    CreateTopicsRequestConfig,
    CreateTopicsRequestTopic,
)
from headrace.wire.messages.forward_request import ForwardRequestRequest, ForwardRequestResponse

CREATE_TOPICS_VERSION = 7
_RETRIED = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT})

Answered = Callable[[ForwardRequestResponse | None], None]
"""Called with the response of the controller; with None if this node is the active controller now, or if none has
answered in time.
"""


class ControllerView(Protocol):
    """Where the active controller is, as far as this node knows."""

    @property
    def is_active(self) -> bool: ...

    @property
    def active_controller(self) -> NodeId | None: ...

    def when_applied(self, offset: int, then: Callable[[], None]) -> None: ...


class ControllerRequests:
    def __init__(self, controller: ControllerView, *, node_id: NodeId, peers: PeerRequests, timers: Timers) -> None:
        self._controller = controller
        self._node_id = node_id
        self._peers = peers
        self._timers = timers
        self._count = 0

    def forward(self, request: ForwardRequestRequest, *, timeout_ms: float, answered: Answered) -> "Forward | None":
        """Send the request to the active controller; None, and nothing is sent, above the limit of such requests."""
        if self._count >= FORWARDS_MAX:
            return None
        self._count += 1
        forward = Forward(self, request, self._timers.now_ms() + timeout_ms, answered)
        self._timers.next_turn(lambda: self._attempt(forward))
        return forward

    def create_topics(self, topics: Sequence[CreatableTopic], then: Callable[[], None]) -> None:
        """Create topics in the name of this node, and call back when the image has them or they were not created."""
        request = CreateTopicsRequest(topics=tuple(_requested(topic) for topic in topics), timeout_ms=FORWARD_WAIT_MS)
        body = codec(ApiKey.CREATE_TOPICS).encode_request(request, CREATE_TOPICS_VERSION)
        frame = request_frame(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, 0, None, body)[SIZE_BYTES:]
        principal = node_principal(self._node_id)
        forwarded = ForwardRequestRequest(principal_type=principal.type, principal_name=principal.name, frame=frame)
        if self.forward(forwarded, timeout_ms=FORWARD_WAIT_MS, answered=lambda _response: then()) is None:
            self._timers.next_turn(then)

    def _attempt(self, forward: "Forward") -> None:
        if forward.is_over:
            return
        now_ms, leader = self._timers.now_ms(), self._controller.active_controller
        if self._controller.is_active or now_ms >= forward.deadline_ms:
            self._end(forward, None)
        elif leader is None or leader == self._node_id:
            self._retry(forward)
        else:
            self._peers.send(
                leader,
                ApiKey.FORWARD_REQUEST,
                0,
                forward.request,
                timeout_ms=forward.deadline_ms - now_ms,
                then=lambda outcome: self._answered(forward, outcome),
            )

    def _retry(self, forward: "Forward") -> None:
        self._timers.after(FORWARD_RETRY_MS, lambda: self._attempt(forward))

    def _answered(self, forward: "Forward", outcome: object) -> None:
        if forward.is_over:
            return
        if isinstance(outcome, PeerFailure) or (
            isinstance(outcome, ForwardRequestResponse) and outcome.error_code in _RETRIED
        ):
            self._retry(forward)
            return
        assert isinstance(outcome, ForwardRequestResponse)
        # A node that cannot follow the log answers late rather than never: the change is committed.
        forward.timer = self._timers.at(forward.deadline_ms, lambda: self._end(forward, outcome))
        self._controller.when_applied(outcome.metadata_offset, lambda: self._end(forward, outcome))

    def _end(self, forward: "Forward", response: ForwardRequestResponse | None) -> None:
        if not forward.is_over:
            self.cancel(forward)
            forward.answered(response)

    def cancel(self, forward: "Forward") -> None:
        """End a request without a response."""
        if not forward.is_over:
            forward.is_over = True
            self._count -= 1
            if forward.timer is not None:
                self._timers.cancel(forward.timer)


class Forward:
    """A request on its way to the active controller."""

    __slots__ = ("_requests", "answered", "deadline_ms", "is_over", "request", "timer")

    def __init__(
        self, requests: ControllerRequests, request: ForwardRequestRequest, deadline_ms: float, answered: Answered
    ) -> None:
        self._requests = requests
        self.request = request
        self.deadline_ms = deadline_ms
        self.answered = answered
        self.is_over = False
        self.timer: Timer | None = None

    def cancel(self) -> None:
        self._requests.cancel(self)


def _requested(topic: CreatableTopic) -> CreateTopicsRequestTopic:
    return CreateTopicsRequestTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        assignments=tuple(
            CreateTopicsRequestAssignment(partition_index=partition, broker_ids=tuple(nodes))
            for partition, nodes in topic.assignments
        ),
        configs=tuple(CreateTopicsRequestConfig(name=name, value=value) for name, value in topic.configs),
    )

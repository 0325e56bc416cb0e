"""WriteTxnMarkers requests to other brokers: each request has many markers, and few are in flight to one broker."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from headrace.broker.marker_writes import MarkerFields, Target
from headrace.broker.peers.requests import PeerFailure
from headrace.broker.services import MetadataSource, PeerServices
from headrace.broker.timers import Timers
from headrace.core.transactions.records import Partition
from headrace.model.errors import ErrorCode, error_code
from headrace.model.ids import NodeId
from headrace.wire.apis import ApiKey
from headrace.wire.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersRequestMarker,
    WriteTxnMarkersRequestTopic,
    WriteTxnMarkersResponse,
)

MARKERS_PER_REQUEST_MAX = 500

MARKER_REQUESTS_IN_FLIGHT_MAX = 4
"""Requests in flight to one broker; a slow partition delays only its own request."""

MARKER_REQUEST_TIMEOUT_MS = 10_000
"""The wait for the commit of the markers of a request. A marker that is sent twice does no harm."""

BROKER_PAUSE_MS = 100
"""The pause before the next request to a broker that could not be reached."""

_VERSION = 2


class MarkerRequestServices(MetadataSource, PeerServices, Protocol):
    """Serves the requests: the metadata offset that they carry, and the peers that get them."""


class RequestedMarker(Protocol):
    """A marker for one partition."""

    @property
    def partition(self) -> Partition: ...

    @property
    def fields(self) -> MarkerFields: ...


MarkerT = TypeVar("MarkerT", bound=RequestedMarker)


class _Broker(Generic[MarkerT]):
    """The markers that one broker is to write."""

    __slots__ = ("in_flight", "paused_until_ms", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[MarkerT] = deque()
        self.in_flight = 0
        self.paused_until_ms = 0.0


class MarkerRequests(Generic[MarkerT]):
    def __init__(
        self,
        services: MarkerRequestServices,
        timers: Timers,
        on_ended: Callable[[MarkerT, ErrorCode], None],
    ) -> None:
        """`on_ended` is called in a later turn for each marker: NONE if the leader has committed it."""
        self._services = services
        self._timers = timers
        self._on_ended = on_ended
        self._brokers: dict[NodeId, _Broker[MarkerT]] = {}

    def add(self, node_id: NodeId, marker: MarkerT) -> None:
        """Queue a marker for a broker. Call `flush` afterwards, once for all markers of the turn."""
        self._brokers.setdefault(node_id, _Broker()).waiting.append(marker)

    def flush(self) -> None:
        """Send what is queued, as far as the limit of requests in flight allows."""
        for node_id in tuple(self._brokers):
            self._send(node_id, self._brokers[node_id])

    def _send(self, node_id: NodeId, broker: _Broker[MarkerT]) -> None:
        if broker.waiting and self._timers.now_ms() < broker.paused_until_ms:
            self._fail(self._taken(broker, len(broker.waiting)), ErrorCode.NETWORK_EXCEPTION)
        while broker.waiting and broker.in_flight < MARKER_REQUESTS_IN_FLIGHT_MAX:
            self._request(node_id, broker, self._taken(broker, MARKERS_PER_REQUEST_MAX))
        if not broker.waiting and not broker.in_flight and self._timers.now_ms() >= broker.paused_until_ms:
            del self._brokers[node_id]

    @staticmethod
    def _taken(broker: _Broker[MarkerT], count_max: int) -> list[MarkerT]:
        return [broker.waiting.popleft() for _ in range(min(len(broker.waiting), count_max))]

    def _request(self, node_id: NodeId, broker: _Broker[MarkerT], sent: list[MarkerT]) -> None:
        broker.in_flight += 1
        request = _request_for(sent, self._services.image.version)

        def answered(response: object) -> None:
            broker.in_flight -= 1
            if isinstance(response, PeerFailure):
                broker.paused_until_ms = self._timers.now_ms() + BROKER_PAUSE_MS
                self._fail(sent, response.code)
            else:
                assert isinstance(response, WriteTxnMarkersResponse)
                errors = _errors(response)
                for number, marker in enumerate(sent):
                    # If the response leaves out a partition, it is unknown whether its marker was written.
                    self._on_ended(marker, errors.get((number, *marker.partition), ErrorCode.UNKNOWN_SERVER_ERROR))
            self._send(node_id, broker)

        self._services.peers.send(
            node_id,
            ApiKey.WRITE_TXN_MARKERS,
            _VERSION,
            request,
            timeout_ms=MARKER_REQUEST_TIMEOUT_MS,
            then=answered,
        )

    def _fail(self, markers: list[MarkerT], error: ErrorCode) -> None:
        for marker in markers:
            self._on_ended(marker, error)


def _request_for(markers: Sequence[RequestedMarker], metadata_offset: int) -> WriteTxnMarkersRequest:
    """Return a request with one entry per marker, so that the response has the error of each at the same place."""
    return WriteTxnMarkersRequest(
        markers=tuple(
            WriteTxnMarkersRequestMarker(
                producer_id=fields.producer_id,
                producer_epoch=fields.producer_epoch,
                transaction_result=fields.commit,
                topics=(WriteTxnMarkersRequestTopic(name=topic, partition_indexes=(index,)),),
                coordinator_epoch=fields.coordinator_epoch,
                transaction_version=fields.transaction_version,
                sync=fields.sync,
            )
            for fields, (topic, index) in ((each.fields, each.partition) for each in markers)
        ),
        metadata_offset=metadata_offset,
    )


def _errors(response: WriteTxnMarkersResponse) -> dict[Target, ErrorCode]:
    return {
        (number, topic.name, partition.partition_index): error_code(partition.error_code)
        for number, marker in enumerate(response.markers)
        for topic in marker.topics
        for partition in topic.partitions
    }

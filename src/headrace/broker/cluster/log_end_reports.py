"""Reports where this broker's logs end, for partitions of which no replica is known to have every record.

Such partitions are rare. The report is repeated until they have leaders: the controller that received it may be gone.
"""

from collections.abc import Callable

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.membership import Membership
from headrace.broker.peers.requests import PeerRequests
from headrace.broker.timers import Timers
from headrace.core.controller.delta import MetadataDelta
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.recoveries import REPORTED_PER_REQUEST_MAX, LogEnd, needs_recovery
from headrace.model.ids import NodeId
from headrace.wire.apis import ApiKey

REPORT_INTERVAL_MS = 1_000
REPORT_TIMEOUT_MS = 2_000

LogEndOf = Callable[[str, int], tuple[int, int] | None]
"""Returns the leader epoch of the last batch and the end offset of a replica of this node; None while it is unknown."""


class LogEndReporter:
    def __init__(
        self,
        *,
        node_id: NodeId,
        broker_epoch: Callable[[], int],
        controller: ControllerHost,
        membership: Membership,
        peers: PeerRequests,
        timers: Timers,
        log_end_of: LogEndOf,
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._membership = membership
        self._peers = peers
        self._timers = timers
        self._log_end_of = log_end_of
        self._waiting: dict[tuple[str, int], None] = {}
        """Partitions to report; a dictionary serves as an ordered set."""
        self._is_due = False

    def start(self) -> None:
        """Report what waits already, and follow the image from now on."""
        image = self._controller.image
        for topic, partitions in image.leaderless_partitions_on(self._node_id):
            for partition in partitions:
                self._look_at(image, topic.name, partition)
        self._controller.subscribe(self._image_changed)

    def _image_changed(self, delta: MetadataDelta) -> None:
        for name, partition in delta.partitions_changed:
            self._look_at(self._controller.image, name, partition)

    def _look_at(self, image: MetadataImage, name: str, partition: int) -> None:
        state = image.partition(name, partition)
        if state is None or not needs_recovery(state) or self._node_id not in state.last_known_elr:
            self._waiting.pop((name, partition), None)
            return
        self._waiting[name, partition] = None
        if not self._is_due:
            self._is_due = True
            self._timers.next_turn(self._report)

    def _report(self) -> None:
        """Report every partition that still waits, and come back as long as there is one."""
        image = self._controller.image
        ends: list[LogEnd] = []
        for name, partition in tuple(self._waiting):
            state = image.partition(name, partition)
            if state is None or not needs_recovery(state):
                del self._waiting[name, partition]
                continue
            end = self._log_end_of(name, partition)
            if end is not None and len(ends) < REPORTED_PER_REQUEST_MAX:
                ends.append(LogEnd(image.topics[name].topic_id, partition, *end))
        self._is_due = bool(self._waiting)
        if self._is_due:
            self._timers.after(REPORT_INTERVAL_MS, self._report)
        if ends:
            self._send(ends)

    def _send(self, ends: list[LogEnd]) -> None:
        active, epoch = self._controller.active_controller, self._broker_epoch()
        if self._controller.is_active:
            self._membership.log_ends(self._node_id, epoch, ends)
        elif active is not None and active != self._node_id:
            from headrace.wire.messages.report_log_ends import (  # a node without such partitions needs none
                ReportLogEndsRequest,
                ReportLogEndsRequestPartition,
            )

            request = ReportLogEndsRequest(
                broker_id=self._node_id,
                broker_epoch=epoch,
                partitions=tuple(
                    ReportLogEndsRequestPartition(
                        topic_id=end.topic_id,
                        partition_index=end.partition,
                        leader_epoch=end.leader_epoch,
                        end_offset=end.end_offset,
                    )
                    for end in ends
                ),
            )
            self._peers.send(
                active,
                ApiKey.REPORT_LOG_ENDS,
                0,
                request,
                timeout_ms=REPORT_TIMEOUT_MS,
                then=lambda _response: None,
            )

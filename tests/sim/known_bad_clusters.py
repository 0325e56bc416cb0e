"""Clusters with a known fault put in: what the simulator of whole brokers must notice."""

from headrace.broker.cluster.linearizable_reads import LinearizableReads
from headrace.broker.cluster.membership import Membership
from headrace.broker.coordinators.markers import MarkerSender
from headrace.broker.peers.events import PeerLost
from headrace.broker.startup import Startup
from headrace.core.controller.sessions import BrokerSessions
from headrace.model.errors import ErrorCode


def serve_a_stale_read(patch):
    patch.setattr(LinearizableReads, "confirm", lambda reads, then: then(True))


def open_folders_at_boot(patch):
    begin = Startup.begin

    def open_and_begin(startup):
        startup.open_partitions()
        startup.open_partitions = lambda: None
        begin(startup)

    patch.setattr(Startup, "begin", open_and_begin)


def count_markers_as_written_for_unknown_topics(patch):
    """Take a topic that a leader, or an image that is behind, does not know for a deleted one."""
    ended, is_for_this_broker = MarkerSender._ended, MarkerSender._is_for_this_broker

    def believe(markers, delivery, error):
        ended(markers, delivery, ErrorCode.NONE if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error)

    def look_at_once(markers, delivery):
        sending = delivery.sending
        sending.marker = sending.marker._replace(metadata_offset=0)
        return is_for_this_broker(markers, delivery)

    patch.setattr(MarkerSender, "_ended", believe)
    patch.setattr(MarkerSender, "_is_for_this_broker", look_at_once)


def fence_on_a_connection_reset_alone(patch):
    peer_event, gone = Membership.peer_event, BrokerSessions.gone

    def report_at_once(membership, event):
        peer_event(membership, event)
        if isinstance(event, PeerLost) and event.reset and event.peer.node_id in membership._reset:
            membership._report(event.peer.node_id, membership._reset[event.peer.node_id])

    patch.setattr(Membership, "peer_event", report_at_once)
    patch.setattr(BrokerSessions, "gone", lambda sessions, session, *, refused: gone(sessions, session, refused=True))


KNOWN_BAD_CLUSTERS = [
    serve_a_stale_read,
    open_folders_at_boot,
    count_markers_as_written_for_unknown_topics,
    fence_on_a_connection_reset_alone,
]

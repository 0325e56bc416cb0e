"""BrokerHeartbeat: a broker extends its session, and asks to be unfenced, fenced or let go.

Nodes of Headrace add tagged fields about their health.
"""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, INT64, UUID, array, field, request, response

REQUEST = request(
    63,
    "BrokerHeartbeat",
    versions="0-1",
    flexible="0+",
    fields=[
        field("broker_id", INT32),
        field("broker_epoch", INT64, default=-1),
        field("current_metadata_offset", INT64),
        field("want_fence", BOOL),
        field("want_shut_down", BOOL),
        array("offline_log_dirs", UUID, "1+", tag=0),
        field("turn_ms", INT32, "1+", tag=10_000),
        field("append_ms", INT32, "1+", tag=10_001),
        field("is_full", BOOL, "1+", tag=10_002),
        field("sync_ms", INT32, "1+", tag=10_003),
    ],
)

RESPONSE = response(
    63,
    "BrokerHeartbeat",
    versions="0-1",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("is_caught_up", BOOL),
        field("is_fenced", BOOL, default=True),
        field("should_shut_down", BOOL),
    ],
)

"""DescribeConnections, a request of Headrace: the clients that are connected to one broker, page by page."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    32040,
    "DescribeConnections",
    versions="0",
    flexible="0+",
    fields=[
        field("after_connection_id", INT64, default=-1),
        field("connections_max", INT32),
    ],
)

RESPONSE = response(
    32040,
    "DescribeConnections",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        array(
            "connections",
            [
                field("connection_id", INT64),
                field("listener", STRING),
                field("address", STRING),
                field("client_id", STRING),
                field("software_name", STRING),
                field("software_version", STRING),
                field("principal", STRING),
                field("connected_ms", INT64),
                field("idle_ms", INT64),
                field("bytes_in", INT64),
                field("bytes_out", INT64),
                field("errors", INT64),
                array("topics_written", STRING),
                array("topics_read", STRING),
            ],
        ),
        field("next_connection_id", INT64, default=-1),
    ],
)

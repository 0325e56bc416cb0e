"""FindCoordinator: the broker that coordinates a group, a transaction or a share group."""

from headrace.wire.schemas.notation import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    10,
    "FindCoordinator",
    versions="0-6",
    flexible="3+",
    fields=[
        field("key", STRING, "0-3"),
        field("key_type", INT8, "1+"),
        array("coordinator_keys", STRING, "4+"),
    ],
)

RESPONSE = response(
    10,
    "FindCoordinator",
    versions="0-6",
    flexible="3+",
    fields=[
        field("throttle_time_ms", INT32, "1+"),
        field("error_code", INT16, "0-3"),
        field("error_message", STRING, "1-3", nullable="0+"),
        field("node_id", INT32, "0-3"),
        field("host", STRING, "0-3"),
        field("port", INT32, "0-3"),
        array(
            "coordinators",
            [
                field("key", STRING),
                field("node_id", INT32),
                field("host", STRING),
                field("port", INT32),
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+"),
            ],
            "4+",
        ),
    ],
)

"""DescribeCluster: cluster id, controller and brokers."""

from headrace.wire.schemas.notation import BOOL, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    60,
    "DescribeCluster",
    versions="0-2",
    flexible="0+",
    fields=[
        field("include_cluster_authorized_operations", BOOL),
        field("endpoint_type", INT8, "1+", default=1),
        field("include_fenced_brokers", BOOL, "2+"),
    ],
)

RESPONSE = response(
    60,
    "DescribeCluster",
    versions="0-2",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("endpoint_type", INT8, "1+", default=1),
        field("cluster_id", STRING),
        field("controller_id", INT32, default=-1),
        array(
            "brokers",
            [
                field("broker_id", INT32),
                field("host", STRING),
                field("port", INT32),
                field("rack", STRING, nullable="0+", default=None),
                field("is_fenced", BOOL, "2+"),
            ],
        ),
        field("cluster_authorized_operations", INT32, default=-2_147_483_648),
    ],
)

"""ReportReplicaFaults, a request of Headrace: a broker tells the active controller which of its replicas it cannot use
as it should.
"""

from headrace.wire.schemas.notation import INT8, INT16, INT32, INT64, UUID, array, field, request, response

REQUEST = request(
    32036,
    "ReportReplicaFaults",
    versions="0",
    flexible="0+",
    fields=[
        field("broker_id", INT32),
        field("broker_epoch", INT64),
        array(
            "partitions",
            [
                field("topic_id", UUID),
                field("partition_index", INT32),
                field("leader_epoch", INT32),
                field("fault", INT8),
            ],
        ),
    ],
)

RESPONSE = response(32036, "ReportReplicaFaults", versions="0", flexible="0+", fields=[field("error_code", INT16)])

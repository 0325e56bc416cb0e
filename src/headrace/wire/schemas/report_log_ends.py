"""ReportLogEnds, a request of Headrace: a broker tells the active controller where the logs of replicas end, of which
none is known to have every record.
"""

from headrace.wire.schemas.notation import INT16, INT32, INT64, UUID, array, field, request, response

REQUEST = request(
    32035,
    "ReportLogEnds",
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
                field("end_offset", INT64),
            ],
        ),
    ],
)

RESPONSE = response(32035, "ReportLogEnds", versions="0", flexible="0+", fields=[field("error_code", INT16)])

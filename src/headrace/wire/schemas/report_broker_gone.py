"""ReportBrokerGone, a request of Headrace: a node tells the active controller that the process of a broker is gone."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, field, request, response

REQUEST = request(
    32025,
    "ReportBrokerGone",
    versions="0",
    flexible="0+",
    fields=[
        field("broker_id", INT32),
        field("broker_epoch", INT64),
    ],
)

RESPONSE = response(32025, "ReportBrokerGone", versions="0", flexible="0+", fields=[field("error_code", INT16)])

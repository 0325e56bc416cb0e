"""DeleteTopics: by name, from version 6 also by topic id."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, UUID, array, field, request, response

REQUEST = request(
    20,
    "DeleteTopics",
    versions="0-6",
    flexible="4+",
    fields=[
        array(
            "topics",
            [
                field("name", STRING, nullable="0+", default=None),
                field("topic_id", UUID),
            ],
            "6+",
        ),
        array("topic_names", STRING, "0-5"),
        field("timeout_ms", INT32),
    ],
)

RESPONSE = response(
    20,
    "DeleteTopics",
    versions="0-6",
    flexible="4+",
    fields=[
        field("throttle_time_ms", INT32, "1+"),
        array(
            "responses",
            [
                field("name", STRING, nullable="6+"),
                field("topic_id", UUID, "6+"),
                field("error_code", INT16),
                field("error_message", STRING, "5+", nullable="0+", default=None),
            ],
            named="Topic",
        ),
    ],
)

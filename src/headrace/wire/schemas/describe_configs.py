"""DescribeConfigs: the configs of topics and brokers, with the origin of each value."""

from headrace.wire.schemas.notation import BOOL, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    32,
    "DescribeConfigs",
    versions="0-4",
    flexible="4+",
    fields=[
        array(
            "resources",
            [
                field("resource_type", INT8),
                field("resource_name", STRING),
                array("configuration_keys", STRING, nullable="0+"),
            ],
        ),
        field("include_synonyms", BOOL, "1+"),
        field("include_documentation", BOOL, "3+"),
    ],
)

RESPONSE = response(
    32,
    "DescribeConfigs",
    versions="0-4",
    flexible="4+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "results",
            [
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+"),
                field("resource_type", INT8),
                field("resource_name", STRING),
                array(
                    "configs",
                    [
                        field("name", STRING),
                        field("value", STRING, nullable="0+"),
                        field("read_only", BOOL),
                        field("config_source", INT8, "1+", default=-1),
                        field("is_default", BOOL, "0"),
                        field("is_sensitive", BOOL),
                        array(
                            "synonyms",
                            [
                                field("name", STRING),
                                field("value", STRING, nullable="0+"),
                                field("source", INT8),
                            ],
                            "1+",
                        ),
                        field("config_type", INT8, "3+"),
                        field("documentation", STRING, "3+", nullable="0+"),
                    ],
                ),
            ],
        ),
    ],
)

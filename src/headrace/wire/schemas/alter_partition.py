"""AlterPartition: the leader of partitions asks the active controller to change their in-sync replicas."""

from headrace.wire.schemas.notation import INT8, INT16, INT32, INT64, UUID, array, field, request, response

REQUEST = request(
    56,
    "AlterPartition",
    versions="2-3",
    flexible="0+",
    fields=[
        field("broker_id", INT32),
        field("broker_epoch", INT64, default=-1),
        array(
            "topics",
            [
                field("topic_id", UUID),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("leader_epoch", INT32),
                        array("new_isr", INT32, "0-2"),
                        array(
                            "new_isr_with_epochs",
                            [
                                field("broker_id", INT32),
                                field("broker_epoch", INT64, default=-1),
                            ],
                            "3+",
                            named="BrokerState",
                        ),
                        field("leader_recovery_state", INT8, "1+"),
                        field("partition_epoch", INT32),
                    ],
                ),
            ],
        ),
    ],
)

RESPONSE = response(
    56,
    "AlterPartition",
    versions="2-3",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        array(
            "topics",
            [
                field("topic_id", UUID),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("error_code", INT16),
                        field("leader_id", INT32),
                        field("leader_epoch", INT32),
                        array("isr", INT32),
                        field("leader_recovery_state", INT8, "1+"),
                        field("partition_epoch", INT32),
                    ],
                ),
            ],
        ),
    ],
)

from typing import Any

import pytest

from headrace.client.core.admin import brokers, configs, partitions, topics
from headrace.client.core.calls import ANY_BROKER, Call, Operation, Pause
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BrokerError, BrokerUnreachable, InvalidArgument
from headrace.client.types import (
    LATEST,
    MAX_TIMESTAMP,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    NewTopic,
    OffsetAt,
    Outcome,
    QuorumReplica,
    ResourceType,
)
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.messages import (
    create_topics,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_quorum,
    incremental_alter_configs,
    list_offsets,
    metadata,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def described(*leaders: int, controller: int = 1, nodes: tuple[int, ...] = (1, 2)) -> metadata.MetadataResponse:
    return metadata.MetadataResponse(
        brokers=tuple(metadata.MetadataResponseBroker(node_id=n, host="here", port=n) for n in nodes),
        controller_id=controller,
        cluster_id="c",
        topics=(
            metadata.MetadataResponseTopic(
                name="t",
                partitions=tuple(
                    metadata.MetadataResponsePartition(partition_index=n, leader_id=leader)
                    for n, leader in enumerate(leaders)
                ),
            ),
        )
        if leaders
        else (),
    )


class Script:
    """Runs an operation against answers given in order, and keeps what it asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls: list[Call] = []
        self.pauses = 0

    def run(self, operation: Operation[Any]) -> Any:
        replies: list[Any] | None = None
        while True:
            try:
                step = operation.send(replies) if replies is not None else next(operation)
            except StopIteration as end:
                assert not self.answers, "not everything was asked for"
                return end.value
            replies = []
            if isinstance(step, Pause):
                self.pauses += 1
                continue
            for call in step:
                self.calls.append(call)
                replies.append(self.answers.pop(0))

    @property
    def targets(self) -> list[int]:
        return [call.target for call in self.calls]


def created(error: int, message: str | None = None) -> create_topics.CreateTopicsResponse:
    return create_topics.CreateTopicsResponse(
        topics=(create_topics.CreateTopicsResponseTopic(name="t", error_code=error, error_message=message),)
    )


def test_topics_are_created_at_the_controller() -> None:
    script = Script(described(controller=2), created(0))
    operation = topics.create_topics(Cluster(), [NewTopic("t", 3, 2, {"a": "b"})], validate_only=True, timeout_ms=7)
    assert script.run(operation) == {"t": Outcome(ErrorCode.NONE)}
    assert script.targets == [ANY_BROKER, 2]
    request = script.calls[1].message
    assert (request.validate_only, request.timeout_ms) == (True, 7)
    assert (request.topics[0].num_partitions, request.topics[0].replication_factor) == (3, 2)
    assert request.topics[0].configs[0].value == "b"


def test_assignments_replace_the_counts() -> None:
    script = Script(described(), created(0))
    new = NewTopic("t", assignments={1: [2], 0: [1, 2]})
    script.run(topics.create_topics(Cluster(), [new], validate_only=False, timeout_ms=7))
    (topic,) = script.calls[1].message.topics
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
    assert [assignment.broker_ids for assignment in topic.assignments] == [(1, 2), (2,)]


def test_a_controller_that_moved_is_looked_for_again() -> None:
    script = Script(described(controller=1), created(41), described(controller=2), created(36, "is there"))
    operation = topics.create_topics(Cluster(), [NewTopic("t")], validate_only=False, timeout_ms=7)
    assert script.run(operation) == {"t": Outcome(ErrorCode.TOPIC_ALREADY_EXISTS, "is there")}
    assert script.targets == [ANY_BROKER, 1, ANY_BROKER, 2]
    assert script.pauses == 1


def test_a_controller_that_is_never_found_is_an_answer_too() -> None:
    script = Script(*[described(controller=1), created(41)] * 5)
    operation = topics.create_topics(Cluster(), [NewTopic("t")], validate_only=False, timeout_ms=7)
    assert script.run(operation) == {"t": Outcome(ErrorCode.NOT_CONTROLLER)}


def test_any_broker_is_asked_when_the_controller_cannot_be_reached() -> None:
    script = Script(described(controller=2), BrokerUnreachable("refused"), created(0))
    operation = topics.create_topics(Cluster(), [NewTopic("t")], validate_only=False, timeout_ms=7)
    assert script.run(operation) == {"t": Outcome(ErrorCode.NONE)}
    assert script.targets == [ANY_BROKER, 2, ANY_BROKER]
    script = Script(described(controller=2), BrokerUnreachable("refused"), BrokerUnreachable("refused too"))
    operation = topics.create_topics(Cluster(), [NewTopic("t")], validate_only=False, timeout_ms=7)
    with pytest.raises(BrokerUnreachable, match="refused too"):
        script.run(operation)


def test_without_a_known_controller_any_broker_is_asked() -> None:
    script = Script(described(controller=9), created(0))
    script.run(topics.create_topics(Cluster(), [NewTopic("t")], validate_only=False, timeout_ms=7))
    assert script.targets == [ANY_BROKER, ANY_BROKER]


def test_delete_carries_the_names_for_every_version() -> None:
    answer = delete_topics.DeleteTopicsResponse(
        responses=(delete_topics.DeleteTopicsResponseTopic(name="t", error_code=3),)
    )
    script = Script(described(), answer)
    operation = topics.delete_topics(Cluster(), ["t"], timeout_ms=7)
    assert script.run(operation) == {"t": Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
    request = script.calls[1].message
    assert (request.topic_names, request.topics[0].name) == (("t",), "t")


def found(*answers: tuple[int, int, int]) -> list_offsets.ListOffsetsResponse:
    """(partition, offset, error) each."""
    return list_offsets.ListOffsetsResponse(
        topics=(
            list_offsets.ListOffsetsResponseTopic(
                name="t",
                partitions=tuple(
                    list_offsets.ListOffsetsResponsePartition(partition_index=n, offset=offset, error_code=error)
                    for n, offset, error in answers
                ),
            ),
        )
    )


def test_offsets_are_asked_of_each_leader_at_once() -> None:
    script = Script(described(1, 2), found((0, 10, 0)), found((1, 20, 0)))
    result = script.run(partitions.offsets(Cluster(), {T0: LATEST, T1: 5}, timeout_ms=7))
    assert result == {T0: OffsetAt(10, -1, -1, ErrorCode.NONE), T1: OffsetAt(20, -1, -1, ErrorCode.NONE)}
    assert script.targets == [ANY_BROKER, 1, 2]
    assert script.calls[1].message.replica_id == -1
    assert script.calls[2].message.topics[0].partitions[0].timestamp == 5


def test_a_leader_that_moved_is_asked_again() -> None:
    script = Script(described(1, 2), found((0, 10, 0)), found((1, -1, 6)), described(1, 1), found((1, 21, 0)))
    result = script.run(partitions.offsets(Cluster(), {T0: LATEST, T1: LATEST}, timeout_ms=7))
    assert (result[T0].offset, result[T1].offset) == (10, 21)
    assert script.targets == [ANY_BROKER, 1, 2, ANY_BROKER, 1]


def test_a_partition_that_does_not_exist_is_an_answer_after_some_tries() -> None:
    script = Script(*[described(1)] * 5)
    result = script.run(partitions.offsets(Cluster(), {T1: LATEST}, timeout_ms=7))
    assert result == {T1: OffsetAt(-1, -1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}


def test_a_partition_left_out_of_the_answer() -> None:
    script = Script(described(1), found())
    result = script.run(partitions.offsets(Cluster(), {T0: LATEST}, timeout_ms=7))
    assert result[T0].error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_newest_record_needs_a_version_that_has_it() -> None:
    script = Script(described(1), found((0, 3, 0)))
    script.run(partitions.offsets(Cluster(), {T0: MAX_TIMESTAMP}, timeout_ms=7))
    assert script.calls[1].min_version == 7


def test_an_unreachable_leader_is_raised() -> None:
    with pytest.raises(BrokerUnreachable):
        Script(described(1), BrokerUnreachable("gone")).run(partitions.offsets(Cluster(), {T0: LATEST}, timeout_ms=7))


def test_configs_of_a_broker_are_asked_of_that_broker() -> None:
    def answer(kind: int, name: str) -> describe_configs.DescribeConfigsResponse:
        entry = describe_configs.DescribeConfigsResponseConfig(name="b", value="1", config_source=5)
        other = describe_configs.DescribeConfigsResponseConfig(
            name="a", value=None, config_source=77, is_sensitive=True
        )
        result = describe_configs.DescribeConfigsResponseResult(
            resource_type=kind, resource_name=name, configs=(entry, other)
        )
        return describe_configs.DescribeConfigsResponse(results=(result,))

    script = Script(described(), answer(4, "2"), answer(2, "t"))
    result = script.run(
        configs.describe_configs(Cluster(), [(ResourceType.BROKER, "2"), (2, "t")], with_documentation=True)
    )
    assert script.targets == [ANY_BROKER, 2, ANY_BROKER]
    first, second = result[ConfigResource(ResourceType.BROKER, "2")]
    assert (first.name, first.sensitive, first.source.name) == ("a", True, "UNKNOWN")
    assert (second.name, second.is_default) == ("b", True)


def test_configs_that_cannot_be_described() -> None:
    result = describe_configs.DescribeConfigsResponseResult(
        resource_type=2, resource_name="t", error_code=3, error_message="no t"
    )
    with pytest.raises(BrokerError, match="topic 't' could not be described: UNKNOWN_TOPIC_OR_PARTITION, no t"):
        Script(describe_configs.DescribeConfigsResponse(results=(result,))).run(
            configs.describe_configs(Cluster(), [(2, "t")], with_documentation=False)
        )


@pytest.mark.parametrize("resource", [(99, "t"), (4, "one")])
def test_resources_that_cannot_be(resource: tuple[int, str]) -> None:
    with pytest.raises(InvalidArgument):
        Script().run(configs.describe_configs(Cluster(), [resource], with_documentation=False))


def test_configs_are_changed_one_by_one() -> None:
    result = incremental_alter_configs.IncrementalAlterConfigsResponseResource(
        resource_type=2, resource_name="t", error_code=40, error_message="bad"
    )
    script = Script(incremental_alter_configs.IncrementalAlterConfigsResponse(responses=(result,)))
    change = ConfigChange(ConfigOperation.APPEND, "cleanup.policy", "compact")
    outcome = script.run(configs.alter_configs(Cluster(), {(2, "t"): [change]}, validate_only=True))
    assert outcome == {ConfigResource(ResourceType.TOPIC, "t"): Outcome(ErrorCode.INVALID_CONFIG, "bad")}
    (resource,) = script.calls[0].message.resources
    assert (resource.configs[0].config_operation, script.calls[0].message.validate_only) == (2, True)


def test_log_dirs_of_all_brokers() -> None:
    answer = describe_log_dirs.DescribeLogDirsResponse(
        results=(describe_log_dirs.DescribeLogDirsResponseResult(log_dir="/data", total_bytes=9),)
    )
    script = Script(described(), answer, answer)
    assert [(one.node_id, one.path) for one in script.run(brokers.log_dirs(Cluster(), None))] == [
        (1, "/data"),
        (2, "/data"),
    ]


def test_the_cluster_is_described() -> None:
    description = Script(described(nodes=(2, 1))).run(brokers.describe_cluster(Cluster()))
    assert [broker.node_id for broker in description.brokers] == [1, 2]
    assert (description.cluster_id, description.controller_id) == ("c", 1)


def test_fenced_brokers_are_described_on_request() -> None:
    found = tuple(
        describe_cluster.DescribeClusterResponseBroker(broker_id=node, host="here", port=node, is_fenced=node == 2)
        for node in (2, 1)
    )
    script = Script(describe_cluster.DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=found))
    description = script.run(brokers.describe_cluster(Cluster(), include_fenced=True))
    assert [(broker.node_id, broker.is_fenced) for broker in description.brokers] == [(1, False), (2, True)]
    assert script.calls[0].message.include_fenced_brokers


def quorum_answer(**fields: Any) -> describe_quorum.DescribeQuorumResponse:
    replica = describe_quorum.DescribeQuorumResponseReplica
    partition = describe_quorum.DescribeQuorumResponsePartition(
        leader_id=3,
        leader_epoch=7,
        high_watermark=90,
        current_voters=(
            replica(replica_id=3, log_end_offset=100),
            replica(replica_id=1, log_end_offset=95, last_caught_up_timestamp=5),
        ),
        observers=(replica(replica_id=4, log_end_offset=-1),),
    )
    topic = describe_quorum.DescribeQuorumResponseTopic(topic_name="__cluster_metadata", partitions=(partition,))
    return describe_quorum.DescribeQuorumResponse(topics=(topic,), **fields)


def test_the_quorum_is_described_with_the_lag_of_each_replica() -> None:
    described = Script(quorum_answer()).run(brokers.describe_quorum())
    assert (described.leader, described.leader_epoch, described.high_watermark) == (3, 7, 90)
    assert described.voters == (QuorumReplica(1, 95, 5, 5), QuorumReplica(3, 100, 0, None))
    assert [(observer.node_id, observer.lag) for observer in described.observers] == [(4, 100)]


def test_a_quorum_without_a_leader_is_an_error_with_the_message_of_the_broker() -> None:
    lost = quorum_answer(error_code=ErrorCode.NOT_CONTROLLER, error_message="no active controller since noon")
    with pytest.raises(BrokerError, match="no active controller since noon"):
        Script(lost).run(brokers.describe_quorum())

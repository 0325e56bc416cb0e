"""The administration APIs on a whole node: every served version answers, with Kafka's codes and helpful messages."""

import pytest

from headrace.broker.cluster.metadata_log import MetadataDamaged
from headrace.model.configs import TOPIC_CONFIGS, ConfigLayer
from headrace.model.errors import ErrorCode
from headrace.sim.faults import DISK_FULL
from headrace.sim.node import HOST, PORT
from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_topic_partitions,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
)
from tests.cluster.admin_requests import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    SET,
    TOPIC,
    config,
    create,
    each_version,
    image,
    topic,
)
from tests.cluster.nodes import METADATA_FOLDER
from tests.sim.kafka_client import KafkaClient


class TestCreateTopics:
    @each_version(ApiKey.CREATE_TOPICS)
    def test_every_version(self, node, client, version):
        good, bad = create(client, topic("orders", 3), topic("no good"), version=version)
        assert (good.name, good.error_code) == ("orders", 0)
        assert (bad.name, bad.error_code) == ("no good", ErrorCode.INVALID_TOPIC_EXCEPTION)
        assert len(image(node).topics["orders"].partitions) == 3
        if version >= 1:
            assert "illegal characters" in bad.error_message
        if version >= 5:
            assert (good.num_partitions, good.replication_factor, bad.num_partitions) == (3, 1, -1)
        if version >= 7:
            assert good.topic_id == image(node).topics["orders"].topic_id

    def test_the_response_has_all_configs(self, client):
        (result,) = create(client, topic("orders", configs=(config("retention.ms", "5"),)))
        told = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
        assert told.keys() == {key.name for key in TOPIC_CONFIGS}
        assert told["retention.ms"] == ("5", ConfigLayer.TOPIC)
        assert told["segment.bytes"][1] == ConfigLayer.DEFAULT

    def test_a_created_topic_can_be_used_at_once(self, client):
        create(client, topic("orders"))
        assert [partition.error_code for partition in client.topic_metadata("orders").partitions] == [0]
        assert client.read_all("orders", 0) == []

    def test_validate_only(self, node, client):
        (result,) = create(client, topic("orders", -1, -1), validate_only=True)
        assert (result.error_code, result.num_partitions) == (0, 1)
        assert not image(node).topics

    def test_assignments(self, node, client):
        chosen = create_topics.CreateTopicsRequestAssignment
        (result,) = create(
            client,
            topic(
                "orders", -1, -1, assignments=tuple(chosen(partition_index=index, broker_ids=(1,)) for index in (1, 0))
            ),
        )
        assert (result.error_code, result.num_partitions) == (0, 2)
        (result,) = create(client, topic("others", -1, -1, assignments=(chosen(partition_index=0, broker_ids=(9,)),)))
        assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT

    def test_a_client_that_does_not_wait_gets_the_outcome_too(self, client):
        assert create(client, topic("orders"), timeout_ms=0)[0].error_code == 0

    def test_a_commit_that_does_not_come_is_reported_in_time(self, node, client):
        node.machine.spawner.hold(name_contains="sync_metadata")
        (result,) = create(client, topic("orders"), timeout_ms=2_000)
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert "the outcome is unknown" in result.error_message
        node.machine.spawner.release()
        node.world.run_until(lambda: "orders" in image(node).topics)

    def test_a_full_disk_is_reported_and_heals(self, node, client):
        node.machine.disk.faults.fail("write_vector", code=DISK_FULL, path_contains=METADATA_FOLDER)
        (result,) = create(client, topic("orders"))
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        refused = create(client, topic("orders"))[0]
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "headrace.disk.free.min.bytes" in refused.error_message
        (directory,) = node.machine.node.broker.partitions.directories
        node.world.run_until(lambda: not directory.space.full)
        assert create(client, topic("orders"))[0].error_code == 0

    def test_many_topics_of_one_request(self, node, client):
        results = create(client, *(topic(f"topic-{number}") for number in range(300)))
        assert {result.error_code for result in results} == {0}
        assert len(image(node).topics) == 300


class TestDeleteTopics:
    @each_version(ApiKey.DELETE_TOPICS)
    def test_every_version(self, node, client, version):
        create(client, topic("orders"))
        wanted = tuple(delete_topics.DeleteTopicsRequestTopic(name=name) for name in ("orders", "nowhere"))
        request = delete_topics.DeleteTopicsRequest(topics=wanted, topic_names=("orders", "nowhere"), timeout_ms=1000)
        done, unknown = client.ask(ApiKey.DELETE_TOPICS, version, request).responses
        assert (done.name, done.error_code) == ("orders", 0)
        assert (unknown.name, unknown.error_code) == ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert not image(node).topics

    def test_by_id(self, node, client):
        (created,) = create(client, topic("orders"))
        ids = (created.topic_id, b"u" * 16)
        request = delete_topics.DeleteTopicsRequest(
            topics=tuple(delete_topics.DeleteTopicsRequestTopic(topic_id=topic_id) for topic_id in ids)
        )
        done, unknown = client.ask(ApiKey.DELETE_TOPICS, 6, request).responses
        assert (done.name, done.topic_id, done.error_code) == ("orders", created.topic_id, 0)
        assert (unknown.topic_id, unknown.error_code) == (b"u" * 16, ErrorCode.UNKNOWN_TOPIC_ID)

    def test_a_name_can_be_used_again(self, client):
        (first,) = create(client, topic("orders"))
        request = delete_topics.DeleteTopicsRequest(topics=(delete_topics.DeleteTopicsRequestTopic(name="orders"),))
        client.ask(ApiKey.DELETE_TOPICS, 6, request)
        (second,) = create(client, topic("orders", 2))
        assert second.error_code == 0
        assert first.topic_id != second.topic_id
        assert client.read_all("orders", 1) == []


class TestCreatePartitions:
    @each_version(ApiKey.CREATE_PARTITIONS)
    def test_every_version(self, node, client, version):
        create(client, topic("orders", 2))
        wanted = create_partitions.CreatePartitionsRequestTopic
        request = create_partitions.CreatePartitionsRequest(
            topics=(
                wanted(name="orders", count=4, assignments=None),
                wanted(name="nowhere", count=4, assignments=None),
            ),
            timeout_ms=1000,
        )
        done, unknown = client.ask(ApiKey.CREATE_PARTITIONS, version, request).results
        assert (done.name, done.error_code, done.error_message) == ("orders", 0, None)
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.read_all("orders", 3) == []
        (shrunk,) = client.ask(
            ApiKey.CREATE_PARTITIONS,
            version,
            create_partitions.CreatePartitionsRequest(topics=(wanted(name="orders", count=2, assignments=None),)),
        ).results
        assert shrunk.error_code == ErrorCode.INVALID_PARTITIONS
        assert shrunk.error_message == 'topic "orders" has 4 partitions, but 2 were requested: partitions can only grow'


class TestCluster:
    @each_version(ApiKey.DESCRIBE_CLUSTER)
    def test_describe_cluster(self, node, client, version):
        request = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
        answer = client.ask(ApiKey.DESCRIBE_CLUSTER, version, request)
        assert (answer.error_code, answer.controller_id) == (0, 1)
        assert answer.cluster_id == node.machine.node.cluster_id
        assert [(broker.broker_id, broker.host, broker.port) for broker in answer.brokers] == [(1, HOST, PORT)]
        assert answer.cluster_authorized_operations > 0

    @pytest.mark.parametrize(
        ("kind", "error"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
    )
    def test_other_endpoint_types(self, client, kind, error):
        answer = client.ask(ApiKey.DESCRIBE_CLUSTER, 1, describe_cluster.DescribeClusterRequest(endpoint_type=kind))
        assert answer.error_code == error

    def test_list_config_resources(self, client):
        create(client, topic("a"), topic("b"))

        def listed(*kinds, version=1):
            request = list_config_resources.ListConfigResourcesRequest(resource_types=kinds)
            answer = client.ask(ApiKey.LIST_CONFIG_RESOURCES, version, request)
            return answer.error_code, [(found.resource_type, found.resource_name) for found in answer.config_resources]

        assert listed(version=0) == (0, [])
        assert listed() == (0, [(TOPIC, "a"), (TOPIC, "b"), (BROKER, "1"), (BROKER_LOGGER, "1")])
        assert listed(TOPIC) == (0, [(TOPIC, "a"), (TOPIC, "b")])
        assert listed(CLIENT_METRICS) == (0, [])
        assert listed(99) == (ErrorCode.UNSUPPORTED_VERSION, [])

    @each_version(ApiKey.FIND_COORDINATOR)
    def test_the_coordinator_of_a_key_is_the_leader_of_its_partition(self, client, version):
        request = find_coordinator.FindCoordinatorRequest(key="group", coordinator_keys=("group", "other"))
        answer = client.ask(ApiKey.FIND_COORDINATOR, version, request)
        found = answer.coordinators if version >= 4 else [answer]
        assert [(each.error_code, each.node_id) for each in found] == [(ErrorCode.NONE, 1)] * len(found)
        assert [each.key for each in answer.coordinators] == (["group", "other"] if version >= 4 else [])
        if version >= 1:
            request = find_coordinator.FindCoordinatorRequest(key="x", key_type=9, coordinator_keys=("x",))
            answer = client.ask(ApiKey.FIND_COORDINATOR, version, request)
            found = answer.coordinators if version >= 4 else [answer]
            assert found[0].error_code == ErrorCode.INVALID_REQUEST
            request = find_coordinator.FindCoordinatorRequest(key="x", key_type=1, coordinator_keys=("x",))
            answer = client.ask(ApiKey.FIND_COORDINATOR, version, request)
            found = answer.coordinators if version >= 4 else [answer]
            assert (found[0].error_code, found[0].node_id) == (ErrorCode.NONE, 1)


class TestDescribeTopicPartitions:
    def page(self, client, *names, limit=2_000, cursor=None):
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=tuple(describe_topic_partitions.DescribeTopicPartitionsRequestTopic(name=name) for name in names),
            response_partition_limit=limit,
            cursor=cursor
            and describe_topic_partitions.DescribeTopicPartitionsRequestCursor(
                topic_name=cursor.topic_name, partition_index=cursor.partition_index
            ),
        )
        return client.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)

    def test_topics_in_order_with_unknown_ones_named(self, node, client):
        create(client, topic("b", 2), topic("a"))
        answer = self.page(client, "b", "nowhere", "a")
        assert [(found.name, found.error_code, len(found.partitions)) for found in answer.topics] == [
            ("a", 0, 1),
            ("b", 0, 2),
            ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
        ]
        assert answer.next_cursor is None
        partition = answer.topics[1].partitions[1]
        assert (partition.partition_index, partition.leader_id, partition.isr_nodes) == (1, 1, (1,))
        assert answer.topics[0].topic_id == image(node).topics["a"].topic_id
        assert [found.name for found in self.page(client).topics] == ["a", "b"]

    @pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
    def test_pages_hold_every_partition_once(self, client, limit):
        create(client, topic("a", 3), topic("b", 1), topic("c", 5))
        seen, cursor = [], None
        for _ in range(20):
            answer = self.page(client, limit=limit, cursor=cursor)
            page = [(found.name, each.partition_index) for found in answer.topics for each in found.partitions]
            assert len(page) <= limit
            seen += page
            cursor = answer.next_cursor
            if cursor is None:
                break
        assert seen == [(name, index) for name, count in (("a", 3), ("b", 1), ("c", 5)) for index in range(count)]

    def test_a_hostile_cursor(self, client):
        create(client, topic("a"))
        cursor = describe_topic_partitions.DescribeTopicPartitionsRequestCursor(topic_name="a", partition_index=-5)
        assert self.page(client, "a", cursor=cursor).topics[0].error_code == ErrorCode.INVALID_REQUEST
        cursor = describe_topic_partitions.DescribeTopicPartitionsRequestCursor(topic_name="a", partition_index=999)
        answer = self.page(client, "a", cursor=cursor, limit=-1)
        assert (answer.topics[0].error_code, answer.topics[0].partitions, answer.next_cursor) == (0, (), None)


class TestInitProducerId:
    def ask(self, client, version=4, **fields):
        request = init_producer_id.InitProducerIdRequest(**{"transactional_id": None, **fields})
        return client.ask(ApiKey.INIT_PRODUCER_ID, version, request)

    @each_version(ApiKey.INIT_PRODUCER_ID)
    def test_every_version(self, client, version):
        given = [self.ask(client, version) for _ in range(3)]
        assert [(answer.error_code, answer.producer_id, answer.producer_epoch) for answer in given] == [
            (0, 0, 0),
            (0, 1, 0),
            (0, 2, 0),
        ]

    def test_ids_are_never_given_twice(self, node, client):
        before = {self.ask(client).producer_id for _ in range(5)}
        node.machine.kill()
        node.boot()
        again = KafkaClient(node.world)
        assert self.ask(again).producer_id > max(before)

    def test_a_producer_that_brings_its_old_id_gets_a_new_one(self, client):
        answer = self.ask(client, producer_id=44, producer_epoch=3)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 0, 0)

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"transactional_id": "payments"}, ErrorCode.NOT_COORDINATOR),
            ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
            ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
            ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_what_is_refused(self, client, fields, error):
        answer = self.ask(client, **fields)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (error, -1, -1)


class TestTogether:
    def test_a_topic_and_a_broker_config_of_one_commit(self, node, client):
        """Changes that share a sync reach the partitions as one delta."""
        broker = node.machine.node.broker
        node.machine.spawner.hold(name_contains="sync_metadata")
        first = KafkaClient(node.world)
        first.send(
            ApiKey.CREATE_TOPICS, 7, create_topics.CreateTopicsRequest(topics=(topic("early"),), timeout_ms=30_000)
        )
        node.world.run_until(lambda: node.machine.spawner.waiting_names() != [])
        pending = KafkaClient(node.world)
        pending.send(
            ApiKey.CREATE_TOPICS, 7, create_topics.CreateTopicsRequest(topics=(topic("late"),), timeout_ms=30_000)
        )
        change = incremental_alter_configs.IncrementalAlterConfigsRequestConfig(
            name="log.segment.bytes", config_operation=SET, value="2000000"
        )
        resource = incremental_alter_configs.IncrementalAlterConfigsRequestResource(
            resource_type=BROKER, resource_name="", configs=(change,)
        )
        pending.send(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(resource,)),
        )
        node.world.run_until(lambda: len(broker.controller._pending) == 3)
        node.machine.spawner.release()
        answers = []

        def has_both():
            answers.extend(pending.poll())
            return len(answers) == 2

        node.world.run_until(has_both)
        partition = broker.partitions.by_name[b"late"].replicas[0]
        assert (partition.config.segment_bytes, partition.log.config.segment_bytes) == (2_000_000, 2_000_000)

    def test_damaged_metadata_is_reported_rather_than_cut_off(self, node, client):
        """The recovery point of the metadata is kept with those of the partitions."""
        create(client, topic("orders"), topic("others"))
        broker = node.machine.node.broker
        broker.partitions.checkpoint()
        node.world.run_until(lambda: not node.machine.spawner.in_flight())
        node.machine.kill()
        disk = node.machine.disk
        path = f"{METADATA_FOLDER}/{'0' * 20}.log"
        file = disk.open(path)
        disk.write_vector(file, [b"\xff\xff"], 100)
        disk.close(file)
        with pytest.raises(MetadataDamaged, match="restore the folder"):
            node.boot()

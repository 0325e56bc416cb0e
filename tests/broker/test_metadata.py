"""Metadata, ApiVersions and the describing APIs: the view of the cluster that clients get."""

import pytest

from headrace.broker.api.registry import SERVED
from headrace.model.errors import ErrorCode
from headrace.model.limits import METADATA_BYTES_AT_ONCE_MAX, METADATA_TOPICS_PER_SLICE
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages import (
    api_versions,
    create_topics,
    describe_log_dirs,
    describe_producers,
    metadata,
)
from tests.broker.virtual import HOST, LONG_MS, PORT, VirtualBroker, new_topic

E = ErrorCode
NO_OPERATIONS = -(2**31)


@pytest.fixture(scope="module")
def broker():
    return VirtualBroker(settings={"broker.rack": "r1"}).with_topic("a", partitions=3).with_topic("b")


def creating(**settings):
    return VirtualBroker(settings={"auto.create.topics.enable": "true", "num.partitions": "2", **settings})


def ask(client, topics, version=13, **options):
    request = metadata.MetadataRequest(topics=topics, **{"allow_auto_topic_creation": False, **options})
    return client.ask(ApiKey.METADATA, version, request)


def named(*names):
    return tuple(metadata.MetadataRequestTopic(name=name) for name in names)


# Metadata


@pytest.mark.parametrize("version", range(14))
def test_every_version_names_brokers_topics_and_leaders(broker, version):
    client = broker.client()
    topics = named() if version == 0 else None
    response = ask(client, topics, version)
    assert [(each.node_id, each.host, each.port) for each in response.brokers] == [
        (broker.node.config.node_id, HOST, PORT)
    ]
    assert response.brokers[0].rack == ("r1" if version >= 1 else None)
    assert {topic.name: len(topic.partitions) for topic in response.topics} == {"a": 3, "b": 1}
    for topic in response.topics:
        assert topic.error_code == 0
        for index, partition in enumerate(topic.partitions):
            assert (partition.partition_index, partition.error_code) == (index, 0)
            assert partition.leader_id == broker.node.config.node_id
            assert partition.replica_nodes == partition.isr_nodes == (broker.node.config.node_id,)
            assert partition.leader_epoch == (0 if version >= 7 else -1)
    if version >= 2:
        assert response.cluster_id == broker.node.cluster_id
    if version >= 1:
        assert response.controller_id == broker.node.config.node_id
    if version >= 10:
        assert all(topic.topic_id != bytes(16) for topic in response.topics)


def test_no_topics_are_no_topics_from_version_1(broker):
    assert ask(broker.client(), (), 1).topics == ()


def test_single_topics_known_unknown_and_illegal(broker):
    names = ("b", "nowhere", "", ".", "..", "x" * 250, "a b", "größe", "a/b")
    response = ask(broker.client(), named(*names))
    errors = {topic.name: topic.error_code for topic in response.topics}
    assert errors.pop("b") == 0
    assert errors.pop("nowhere") == E.UNKNOWN_TOPIC_OR_PARTITION
    assert set(errors.values()) == {E.INVALID_TOPIC_EXCEPTION}
    assert len(errors) == 7


def test_topics_by_id(broker):
    client = broker.client()
    topic_id = client.topic_id("a")
    wanted = (
        metadata.MetadataRequestTopic(topic_id=topic_id, name=None),
        metadata.MetadataRequestTopic(topic_id=bytes(range(16)), name=None),
    )
    known, unknown = ask(client, wanted, 12).topics
    assert (known.name, known.error_code, len(known.partitions)) == ("a", 0, 3)
    assert (unknown.error_code, unknown.topic_id) == (E.UNKNOWN_TOPIC_ID, bytes(range(16)))


@pytest.mark.parametrize("version", [10, 11])
def test_ids_before_version_12_are_ignored(broker, version):
    client = broker.client()
    wanted = (metadata.MetadataRequestTopic(topic_id=bytes(range(16)), name=None),)
    client.send(ApiKey.METADATA, version, metadata.MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
    broker.run_until(lambda: bool(client.connection.receive()) or client.is_closed())
    assert broker.client().metadata("a").topics[0].error_code == 0
    assert broker.metrics.handler_failures == 0


def test_a_topic_without_a_name_or_an_id_closes_the_connection(broker):
    client = broker.client()
    wanted = (metadata.MetadataRequestTopic(name=None),)
    client.send(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=wanted))
    client.wait_closed()


def test_authorized_operations_are_returned_when_asked_for(broker):
    client = broker.client()
    told = ask(
        client, named("a"), 10, include_topic_authorized_operations=True, include_cluster_authorized_operations=True
    )
    untold = ask(client, named("a"), 10)
    # The bits of Kafka's codes: read 3, write 4, create 5, delete 6, alter 7, describe 8, ... configs 10 and 11.
    assert told.topics[0].topic_authorized_operations == sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
    assert told.cluster_authorized_operations == sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
    assert untold.topics[0].topic_authorized_operations == NO_OPERATIONS
    assert untold.cluster_authorized_operations == NO_OPERATIONS


def test_many_topics_are_answered_over_several_turns():
    count = 2 * METADATA_TOPICS_PER_SLICE + 10
    broker = VirtualBroker()
    client, other = broker.client(), broker.client()
    names = [f"n{place}" for place in range(count)]
    asked = client.send(
        ApiKey.METADATA, 12, metadata.MetadataRequest(topics=named(*names), allow_auto_topic_creation=False)
    )
    before = broker.metrics.requests[ApiKey.METADATA]
    broker.run_until(lambda: broker.metrics.requests[ApiKey.METADATA] > before)
    assert not broker.node.loop.dirty
    assert other.metadata().topics == ()
    response = client.wait(asked)
    assert [topic.name for topic in response.topics] == names
    client.send(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=named(*names), allow_auto_topic_creation=False))
    broker.run_until(lambda: broker.metrics.requests[ApiKey.METADATA] > before + 2)
    client.connection.reset()
    broker.steps()
    assert broker.metrics.parked_requests == 0


# Topics that are named into being


@pytest.mark.parametrize("version", [0, 1, 3, 4, 13])
def test_a_named_topic_is_created_and_ready_when_it_is_named_in_the_response(version):
    broker = creating()
    client = broker.client()
    response = ask(client, named("fresh"), version, allow_auto_topic_creation=True)
    [topic] = response.topics
    assert (topic.name, topic.error_code, len(topic.partitions)) == ("fresh", 0, 2)
    assert client.produce_error("fresh", 1) == 0


def test_creation_waits_for_its_commit_and_its_folders():
    broker = creating()
    client, other = broker.client(), broker.client()
    broker.machine.spawner.hold(name_contains="_open_later")
    asked = client.send(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=named("slow")))
    broker.steps()
    assert not client.has_answer(asked)
    assert other.metadata().topics == ()
    broker.machine.spawner.release()
    assert client.wait(asked).topics[0].error_code == 0


def test_a_topic_named_twice_is_created_once():
    broker = creating()
    response = ask(broker.client(), named("twin", "twin", "other"), allow_auto_topic_creation=True)
    assert {topic.error_code for topic in response.topics} == {0}


def test_nothing_is_created_where_it_is_not_allowed():
    broker = creating()
    client = broker.client()
    for version in (4, 12):
        assert ask(client, named("no"), version).topics[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    illegal = ask(client, named("a b", "fine"), allow_auto_topic_creation=True).topics
    assert [topic.error_code for topic in illegal] == [E.INVALID_TOPIC_EXCEPTION, 0]
    closed = VirtualBroker().client()
    assert ask(closed, named("no"), allow_auto_topic_creation=True).topics[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_two_clients_that_name_the_same_topic_both_get_it():
    broker = creating()
    clients = [broker.client() for _ in range(5)]
    request = metadata.MetadataRequest(topics=named("shared"))
    asked = [client.send(ApiKey.METADATA, 9, request) for client in clients]
    responses = [client.wait(correlation) for client, correlation in zip(clients, asked, strict=True)]
    assert {response.topics[0].error_code for response in responses} == {0}
    assert len({response.topics[0].topic_id for response in [ask(client, named("shared")) for client in clients]}) == 1


def test_a_client_that_leaves_while_its_topic_is_created():
    broker = creating()
    client = broker.client()
    client.send(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=named("left")))
    broker.steps(2)
    client.connection.reset()
    broker.steps()
    assert ask(broker.client(), named("left")).topics[0].error_code in (0, E.UNKNOWN_TOPIC_OR_PARTITION)
    assert broker.metrics.parked_requests == 0


# ApiVersions


def served():
    return {int(api.key): (api.min_version, api.max_version) for api in SERVED}


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_what_is_served(broker, version):
    request = api_versions.ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.10.0")
    response = broker.client().ask(ApiKey.API_VERSIONS, version, request)
    assert response.error_code == 0
    assert {each.api_key: (each.min_version, each.max_version) for each in response.api_keys} == served()
    if version >= 3:
        levels = {feature.name: feature.max_version for feature in response.supported_features}
        assert list(levels)[:3] == ["metadata.version", "group.version", "transaction.version"]
        assert all(name.startswith("headrace.") for name in list(levels)[3:])
        assert {feature.name: feature.max_version_level for feature in response.finalized_features} == levels


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_a_version_of_api_versions_we_do_not_know_is_answered_as_version_0(broker, version):
    client = broker.client()
    body = codec(ApiKey.API_VERSIONS).encode_request(api_versions.ApiVersionsRequest(), 0)
    head = b"".join(
        number.to_bytes(size, "big", signed=True) for number, size in ((18, 2), (version, 2), (321, 4), (-1, 2))
    )
    content = head + body + b"\x00whatever comes in such a version"
    client.send_bytes(len(content).to_bytes(4, "big") + content)
    broker.run_until(lambda: len(client.connection.receive()) > 4)
    broker.steps()
    frame = bytes(client.connection.receive()[4:])
    correlation, position = frames.read_response_header(frame, 0, len(frame), api_key=18, api_version=0)
    response = codec(ApiKey.API_VERSIONS).decode_response(frame, position, len(frame), 0)
    assert (correlation, response.error_code) == (321, E.UNSUPPORTED_VERSION)
    assert {each.api_key: (each.min_version, each.max_version) for each in response.api_keys} == served()
    client.connection.received.clear()
    client.send(ApiKey.API_VERSIONS, 0, api_versions.ApiVersionsRequest())
    broker.run_until(lambda: len(client.connection.receive()) > 4)  # the connection goes on


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("kafka", ""), ("-x", "1"), ("x", "1-"), ("a b", "1")])
def test_software_names_out_of_order_are_refused(broker, name, version):
    request = api_versions.ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert broker.client().ask(ApiKey.API_VERSIONS, 3, request).error_code == E.INVALID_REQUEST


@pytest.mark.parametrize("key", [api for api in ApiKey if int(api) not in served()])
def test_keys_that_are_not_served_close_the_connection(broker, key):
    client = broker.client()
    before = broker.metrics.protocol_errors
    client.send_bytes(frames.request_frame(key, 0, 1, "x", b""))
    client.wait_closed()
    assert broker.metrics.protocol_errors == before + 1


@pytest.mark.parametrize("api", [api for api in SERVED if api.key != ApiKey.API_VERSIONS], ids=lambda api: api.key.name)
def test_versions_that_are_not_served_close_the_connection(broker, api):
    for version in (api.max_version + 1, api.min_version - 1):
        client = broker.client()
        content = b"".join(
            number.to_bytes(size, "big", signed=True)
            for number, size in ((int(api.key), 2), (version, 2), (1, 4), (-1, 2))
        )
        client.send_bytes(len(content).to_bytes(4, "big") + content)
        client.wait_closed()


# DescribeProducers and DescribeLogDirs


def test_producers_are_described_with_how_far_they_got():
    broker = VirtualBroker().with_topic("t", partitions=2)
    client = broker.client()
    for sequence in (0, 1):
        client.produce("t", 0, client.batch(producer_id=41, producer_epoch=3, base_sequence=sequence))
    client.produce("t", 0, client.batch(b"a", b"b", producer_id=42, producer_epoch=0, base_sequence=7))
    client.produce("t", 0)
    request = describe_producers.DescribeProducersRequest(
        topics=(
            describe_producers.DescribeProducersRequestTopic(name="t", partition_indexes=(0, 1, 2)),
            describe_producers.DescribeProducersRequestTopic(name="nowhere", partition_indexes=(0,)),
        )
    )
    response = client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, request)
    first, second, third = response.topics[0].partitions
    told = {(each.producer_id, each.producer_epoch, each.last_sequence) for each in first.active_producers}
    assert told == {(41, 3, 1), (42, 0, 8)}
    assert all(each.current_txn_start_offset == -1 for each in first.active_producers)
    assert (second.error_code, second.active_producers) == (0, ())
    assert third.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert response.topics[1].partitions[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def log_dirs(client, topics=None, version=4):
    request = describe_log_dirs.DescribeLogDirsRequest(topics=topics)
    return {result.log_dir: result for result in client.ask(ApiKey.DESCRIBE_LOG_DIRS, version, request).results}


def sizes(result):
    return {
        (topic.name, part.partition_index): part.partition_size for topic in result.topics for part in topic.partitions
    }


@pytest.mark.parametrize("version", range(5))
def test_log_directories_are_described(version):
    broker = VirtualBroker(settings={"log.dirs": "one,two"}).with_topic("t", partitions=4)
    client = broker.client()
    batch = client.batch(bytes(500))
    for _ in range(3):
        client.produce("t", 2, batch)
    described = log_dirs(client, version=version)
    assert sorted(described) == ["one", "two"]
    together = {**sizes(described["one"]), **sizes(described["two"])}
    assert together == {("t", 0): 0, ("t", 1): 0, ("t", 2): 3 * len(batch), ("t", 3): 0}
    assert len(sizes(described["one"])) == len(sizes(described["two"])) == 2, "they are spread evenly"
    if version >= 4:
        assert 0 < described["one"].usable_bytes <= described["one"].total_bytes
    only = (describe_log_dirs.DescribeLogDirsRequestTopic(topic="t", partitions=(2,)),)
    assert sum(len(sizes(result)) for result in log_dirs(client, only, version).values()) == 1
    assert all(sizes(result) == {} for result in log_dirs(client, (), version).values())


def test_a_failed_log_directory_is_reported_as_such():
    broker = VirtualBroker(settings={"log.dirs": "one,two"}).with_topic("t", partitions=2)
    place = next(index for index in (0, 1) if broker.partition("t", index).log.path.startswith("two"))
    broker.machine.disk.faults.fail("write_vector", path_contains=f"t-{place}")
    client = broker.client()
    assert client.produce_error("t", place) == E.KAFKA_STORAGE_ERROR
    described = log_dirs(client)
    assert described["one"].error_code == 0
    assert described["two"].error_code == E.KAFKA_STORAGE_ERROR


# Many topics at once


def test_a_long_request_is_read_over_several_turns_and_refused_where_it_breaks():
    broker = VirtualBroker().with_topic("known")
    client, other = broker.client(), broker.client()
    names = [f"a-rather-long-name-{place}" for place in range(3 * METADATA_TOPICS_PER_SLICE)] + ["known", "known"]
    request = metadata.MetadataRequest(topics=named(*names), allow_auto_topic_creation=False)
    whole = metadata.encode_request(request, 12)
    assert len(whole) > METADATA_BYTES_AT_ONCE_MAX
    asked = client.send(ApiKey.METADATA, 12, request)
    assert other.metadata().topics == ()
    assert not client.has_answer(asked)
    told = client.wait(asked).topics
    assert [topic.name for topic in told] == names[:-1], "a name that is asked for twice is answered once"
    assert [topic.error_code for topic in told[-2:]] == [E.UNKNOWN_TOPIC_OR_PARTITION, 0]
    errors = broker.metrics.protocol_errors
    broken = whole[:-40] + b"\xff" * 40
    client.send_bytes(frames.request_frame(ApiKey.METADATA, 12, 1, "test", broken))
    client.wait_closed()
    assert broker.metrics.protocol_errors == errors + 1
    assert broker.metrics.parked_requests == 0
    assert broker.metrics.handler_failures == 0


@pytest.mark.slow
def test_a_request_for_thousands_of_topics_is_decided_quickly_enough_to_serve_others():
    broker = VirtualBroker()
    client, other = broker.client(), broker.client()
    topics = tuple(new_topic(f"topic-{place}") for place in range(3000))
    request = create_topics.CreateTopicsRequest(topics=topics, timeout_ms=LONG_MS, validate_only=True)
    asked = client.send(ApiKey.CREATE_TOPICS, 7, request)
    assert other.metadata().topics == ()
    response = client.wait(asked)
    assert [topic.error_code for topic in response.topics] == [0] * 3000

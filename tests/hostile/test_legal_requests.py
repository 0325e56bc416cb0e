"""Requests that any client may send, used as weapons: pipelined on several connections, without waiting for answers."""

from collections.abc import Callable

import pytest

from headrace.wire.apis import ApiKey
from headrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsRequestTopic
from headrace.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsRequestTopic,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsRequestResource
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsRequestTopic,
)
from tests.hostile import frames
from tests.hostile.ground import LOOK_S_MAX, ROUNDS_OF_MANY_CASES, Ground
from tests.hostile.pipeline import Pipelines

pytestmark = pytest.mark.process

CONNECTIONS = 8
MAX_TIMESTAMP = -3
RESIDENT_GROWTH_MAX = 64 << 20
HELPER_OPERATIONS_AT_REST_MAX = 4
"""Checks of the disk and the flushes of the healthy client go on all the time."""


def rooms_of_directories(_connection: int) -> bytes:
    return frames.frame(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))


def newest_records(_connection: int) -> bytes:
    asked = tuple(ListOffsetsRequestPartition(partition_index=index, timestamp=MAX_TIMESTAMP) for index in range(8))
    topics = (ListOffsetsRequestTopic(name="target", partitions=asked),)
    return frames.frame(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(replica_id=-1, topics=topics))


def records_written_and_deleted(_connection: int) -> bytes:
    """Each deletion moves the start of a log, which is written to a checkpoint of all partitions."""
    written = frames.frame(ApiKey.PRODUCE, 9, frames.produce_request("target", bytes(frames.good_batch())))
    asked = (DeleteRecordsRequestPartition(partition_index=0, offset=-1),)
    topics = (DeleteRecordsRequestTopic(name="target", partitions=asked),)
    deleted = frames.frame(ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=topics, timeout_ms=1_000))
    return written + deleted


def topics_made_and_deleted(connection: int) -> bytes:
    name = f"short-lived-{connection}"
    topics = (CreateTopicsRequestTopic(name=name, num_partitions=1, replication_factor=1),)
    made = frames.frame(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=topics, timeout_ms=1_000))
    deleted = frames.frame(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=(name,), timeout_ms=1_000))
    return made + deleted


def configs_of_all_kinds(_connection: int) -> bytes:
    resources = tuple(
        DescribeConfigsRequestResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((2, "target"), (2, "compacted"), (4, "1"))
    )
    return frames.frame(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=resources))


def producer_ids(_connection: int) -> bytes:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)
    return frames.frame(ApiKey.INIT_PRODUCER_ID, 4, request)


WEAPONS = (
    rooms_of_directories,
    newest_records,
    records_written_and_deleted,
    topics_made_and_deleted,
    configs_of_all_kinds,
    producer_ids,
)


@pytest.mark.parametrize("weapon", WEAPONS, ids=lambda weapon: weapon.__name__)
def test_a_legal_request_as_a_weapon(ground: Ground, weapon: Callable[[int], bytes]) -> None:
    resident = ground.resident_bytes()
    requests = [weapon(number) for number in range(CONNECTIONS)]
    with Pipelines(ground.connect, requests) as attackers, ground.attacked(rounds=ROUNDS_OF_MANY_CASES) as attack_lasts:
        while attack_lasts() or not attackers.has_begun:
            attackers.resume()
    ground.wait_until_alone()
    ground.wait_until(
        lambda found: found["headrace_helper_operations"] <= HELPER_OPERATIONS_AT_REST_MAX,
        "the end of what the helpers were asked to do",
        LOOK_S_MAX,
    )
    assert ground.metrics()["headrace_directories_offline"] == 0
    assert ground.resident_bytes() - resident < RESIDENT_GROWTH_MAX

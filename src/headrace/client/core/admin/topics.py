"""Describe, create, delete and extend topics."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headrace.client.core.admin.routing import ask_controller
from headrace.client.core.calls import Operation, ask
from headrace.client.core.cluster import Cluster, describe_topic, describe_topics, fetch_metadata
from headrace.client.errors import BadResponse, InvalidArgument
from headrace.client.types import NewTopic, Outcome, TopicDescription
from headrace.model.errors import error_code
from headrace.wire.messages import create_partitions as create_partitions_api
from headrace.wire.messages import create_topics as create_topics_api
from headrace.wire.messages import delete_topics as delete_topics_api
from headrace.wire.messages import describe_topic_partitions as pages_api

PAGE_PARTITIONS = 2_000
PAGES_MAX = 10_000
_UNSET = -1


def topics(cluster: Cluster, names: Iterable[str] | None) -> Operation[tuple[TopicDescription, ...]]:
    """Describe these topics, or all, by name; a topic that does not exist is described by its error."""
    response = yield from fetch_metadata(names)
    cluster.learn(response)
    return tuple(sorted(describe_topics(response), key=lambda topic: topic.name))


def topic_partitions(names: Sequence[str]) -> Operation[tuple[TopicDescription, ...]]:
    """Describe these topics page by page, with any number of partitions and the eligible leader replicas (KIP-966)."""
    wanted = tuple(pages_api.DescribeTopicPartitionsRequestTopic(name=name) for name in sorted(set(names)))
    found: dict[str, TopicDescription] = {}
    cursor: pages_api.DescribeTopicPartitionsRequestCursor | None = None
    for _ in range(PAGES_MAX):
        request = pages_api.DescribeTopicPartitionsRequest(
            topics=wanted, response_partition_limit=PAGE_PARTITIONS, cursor=cursor
        )
        page = yield from ask(pages_api, request)
        for topic in page.topics:
            described = describe_topic(topic)
            before = found.get(described.name)
            found[described.name] = (
                described if before is None else replace(before, partitions=before.partitions + described.partitions)
            )
        if page.next_cursor is None:
            return tuple(found[name] for name in sorted(found))
        at = (page.next_cursor.topic_name, page.next_cursor.partition_index)
        if cursor is not None and at <= (cursor.topic_name, cursor.partition_index):
            break
        cursor = pages_api.DescribeTopicPartitionsRequestCursor(topic_name=at[0], partition_index=at[1])
    raise BadResponse("the broker returns the same page of partitions repeatedly; use a newer broker")


def create_topics(
    cluster: Cluster, new: Sequence[NewTopic], *, validate_only: bool, timeout_ms: int
) -> Operation[dict[str, Outcome]]:
    if isinstance(new, NewTopic):
        raise InvalidArgument(f"topics are created as a list, as in [{new!r}]")
    request = create_topics_api.CreateTopicsRequest(
        topics=tuple(_creatable(topic) for topic in new), timeout_ms=timeout_ms, validate_only=validate_only
    )
    response = yield from ask_controller(
        cluster,
        create_topics_api,
        request,
        codes=lambda response: (topic.error_code for topic in response.topics),
        min_version=1,
    )
    return {topic.name: Outcome(error_code(topic.error_code), topic.error_message or None) for topic in response.topics}


def _creatable(topic: NewTopic) -> create_topics_api.CreateTopicsRequestTopic:
    if not isinstance(topic, NewTopic):
        raise InvalidArgument(f"create_topics() takes NewTopic objects, not {topic!r}")
    assignments = topic.assignments or {}
    return create_topics_api.CreateTopicsRequestTopic(
        name=topic.name,
        num_partitions=_UNSET if assignments else topic.partitions,
        replication_factor=_UNSET if assignments else topic.replication_factor,
        assignments=tuple(
            create_topics_api.CreateTopicsRequestAssignment(partition_index=partition, broker_ids=tuple(brokers))
            for partition, brokers in sorted(assignments.items())
        ),
        configs=tuple(
            create_topics_api.CreateTopicsRequestConfig(name=name, value=value) for name, value in topic.configs.items()
        ),
    )


def delete_topics(cluster: Cluster, names: Sequence[str], *, timeout_ms: int) -> Operation[dict[str, Outcome]]:
    request = delete_topics_api.DeleteTopicsRequest(
        topics=tuple(delete_topics_api.DeleteTopicsRequestTopic(name=name) for name in names),
        topic_names=tuple(names),
        timeout_ms=timeout_ms,
    )
    response = yield from ask_controller(
        cluster,
        delete_topics_api,
        request,
        codes=lambda response: (topic.error_code for topic in response.responses),
    )
    return {
        topic.name or "": Outcome(error_code(topic.error_code), topic.error_message or None)
        for topic in response.responses
    }


def create_partitions(
    cluster: Cluster, totals: Mapping[str, int], *, validate_only: bool, timeout_ms: int
) -> Operation[dict[str, Outcome]]:
    """Increase the number of partitions of topics to these totals."""
    request = create_partitions_api.CreatePartitionsRequest(
        topics=tuple(
            create_partitions_api.CreatePartitionsRequestTopic(name=name, count=total, assignments=None)
            for name, total in totals.items()
        ),
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    response = yield from ask_controller(
        cluster,
        create_partitions_api,
        request,
        codes=lambda response: (result.error_code for result in response.results),
    )
    return {
        result.name: Outcome(error_code(result.error_code), result.error_message or None) for result in response.results
    }

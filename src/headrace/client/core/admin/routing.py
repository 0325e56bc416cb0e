"""Route the requests of an operation to the right broker, and retry when the cluster has changed meanwhile."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from headrace.client.core.calls import ANY_BROKER, ApiCodec, Call, Operation, Pause, ask
from headrace.client.core.cluster import Cluster, fetch_metadata
from headrace.client.errors import BrokerUnreachable, ClientError
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition

ATTEMPTS_MAX = 5
ATTEMPT_PAUSE_MS = 100

LEADER_ERRORS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
    }
)
"""Errors after which refreshed metadata may help."""

Request = TypeVar("Request")
Response = TypeVar("Response")
Result = TypeVar("Result")


def ask_controller(
    cluster: Cluster,
    api: ApiCodec[Request, Response],
    message: Request,
    *,
    codes: Callable[[Response], Iterable[int]],
    min_version: int = 0,
) -> Operation[Response]:
    """Return the controller's response; looks the controller up again when the broker is not the controller.

    When the controller cannot be reached, any broker gets the request: it forwards it to the next controller.
    """
    attempt = 1
    is_lost = False
    while True:
        if cluster.controller_id not in cluster.brokers and not is_lost:
            cluster.learn((yield from fetch_metadata(())))
        is_known = cluster.controller_id in cluster.brokers and not is_lost
        target = cluster.controller_id if is_known else ANY_BROKER
        try:
            response = yield from ask(api, message, target=target, min_version=min_version)
        except BrokerUnreachable:
            if target == ANY_BROKER:
                raise
            is_lost, cluster.controller_id = True, ANY_BROKER
            continue
        if ErrorCode.NOT_CONTROLLER not in codes(response) or attempt == ATTEMPTS_MAX:
            return response
        attempt += 1
        cluster.controller_id = ANY_BROKER
        yield Pause(ATTEMPT_PAUSE_MS)


def ask_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    *,
    call: Callable[[int, list[TopicPartition]], Call],
    results: Callable[[Response], Mapping[TopicPartition, Result]],
    error_of: Callable[[Result], int],
    failure: Callable[[ErrorCode], Result],
) -> Operation[dict[TopicPartition, Result]]:
    """Send one call to each leader, in parallel, for its partitions; partitions that moved are retried."""
    done: dict[TopicPartition, Result] = {}
    left = list(dict.fromkeys(partitions))
    for attempt in range(ATTEMPTS_MAX):
        if attempt > 0:
            yield Pause(ATTEMPT_PAUSE_MS)
        if attempt > 0 or any(cluster.leader(partition) is None for partition in left):
            cluster.learn((yield from fetch_metadata(sorted({partition.topic for partition in left}))))
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in left:
            leader = cluster.leader(partition)
            if leader is None:
                known = cluster.partition_count(partition.topic) or 0
                missing = partition.partition >= known
                done[partition] = failure(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if missing else ErrorCode.LEADER_NOT_AVAILABLE
                )
            else:
                by_leader.setdefault(leader, []).append(partition)
        if by_leader:
            replies = yield tuple(call(leader, owned) for leader, owned in by_leader.items())
            for reply, owned in zip(replies, by_leader.values(), strict=True):
                if isinstance(reply, ClientError):
                    raise reply
                answered = results(reply)
                done.update((p, answered[p] if p in answered else failure(_UNANSWERED)) for p in owned)
        left = [partition for partition in left if error_of(done[partition]) in LEADER_ERRORS]
        if not left:
            break
    return done


_UNANSWERED = ErrorCode.UNKNOWN_SERVER_ERROR
"""Stands for a partition that a broker left out of its response."""


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped

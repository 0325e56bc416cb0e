"""DescribeLogDirs (35): the partitions in each log directory, and its free space."""

from collections.abc import Callable

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.result_collector import ResultCollector
from headrace.broker.partitions.replica import Replica
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.ports.disk import Disk
from headrace.ports.spawner import Lane
from headrace.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResponsePartition,
    DescribeLogDirsResponseResult,
    DescribeLogDirsResponseTopic,
)


def handle(request: DescribeLogDirsRequest, ctx: RequestContext) -> DescribeLogDirsResponse | Parked:
    if not ctx.authorized(Operation.DESCRIBE, AclResourceType.CLUSTER, CLUSTER_NAME):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted: dict[str, frozenset[int]] | None = None
    if request.topics is not None:
        wanted = {topic.topic: frozenset(topic.partitions) for topic in request.topics}
    collector: ResultCollector[DescribeLogDirsResponseResult] = ResultCollector(ctx)
    for directory, partitions in ctx.partition_admin.by_directory():
        _ask_room(ctx, directory, _topics(partitions, wanted), collector.later())
    for failed in ctx.partition_admin.failed_directories:
        collector.add(DescribeLogDirsResponseResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=failed))
    return collector.response(
        lambda results: DescribeLogDirsResponse(throttle_time_ms=ctx.throttle_time_ms, results=tuple(results))
    )


def _ask_room(
    ctx: RequestContext,
    directory: str,
    topics: tuple[DescribeLogDirsResponseTopic, ...],
    fill: Callable[[DescribeLogDirsResponseResult], None],
) -> None:
    def completed(space: tuple[int, int] | None, _error: BaseException | None) -> None:
        if space is None:
            fill(DescribeLogDirsResponseResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory))
        else:
            total_bytes, usable_bytes = space
            fill(
                DescribeLogDirsResponseResult(
                    log_dir=directory, topics=topics, total_bytes=total_bytes, usable_bytes=usable_bytes
                )
            )

    ctx.spawner.submit(_space(ctx.disk, directory), completed, Lane.REQUEST)


def _space(disk: Disk, directory: str) -> Callable[[], tuple[int, int]]:
    return lambda: (disk.total_bytes(directory), disk.free_bytes(directory))


def _topics(
    partitions: list[Replica], wanted: dict[str, frozenset[int]] | None
) -> tuple[DescribeLogDirsResponseTopic, ...]:
    by_topic: dict[str, list[DescribeLogDirsResponsePartition]] = {}
    for partition in partitions:
        if wanted is None or partition.index in wanted.get(partition.topic, ()):
            by_topic.setdefault(partition.topic, []).append(
                DescribeLogDirsResponsePartition(
                    partition_index=partition.index, partition_size=partition.log.size_bytes, offset_lag=0
                )
            )
    return tuple(DescribeLogDirsResponseTopic(name=topic, partitions=tuple(held)) for topic, held in by_topic.items())

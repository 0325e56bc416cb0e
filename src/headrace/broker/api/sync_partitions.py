"""SyncPartitions (32023): a coordinator has partition leaders sync the rows of a batch that it is about to commit.

The response has the boot of the operating system, by which the coordinator notices that rows may be lost.
"""

from collections.abc import Mapping

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.partition_syncs import Partition, sync_partitions
from headrace.model.errors import ErrorCode
from headrace.wire.messages.sync_partitions import (
    SyncPartitionsRequest,
    SyncPartitionsResponse,
    SyncPartitionsResponsePartition,
    SyncPartitionsResponseTopic,
)


def handle(request: SyncPartitionsRequest, ctx: RequestContext) -> SyncPartitionsResponse | Parked:
    wanted = dict.fromkeys((topic.name, index) for topic in request.topics for index in topic.partition_indexes)
    if ctx.image.version < request.metadata_offset:
        # This broker may still lead a former topic of the same name: the coordinator tries again.
        return _response(request, ctx, dict.fromkeys(wanted, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    parked = ctx.park()
    sync_partitions(ctx.partition_admin, wanted.keys(), lambda errors: parked.complete(_response(request, ctx, errors)))
    return parked


def _response(
    request: SyncPartitionsRequest, ctx: RequestContext, errors: Mapping[Partition, ErrorCode]
) -> SyncPartitionsResponse:
    return SyncPartitionsResponse(
        boot_id=ctx.disk.boot_id(),
        topics=tuple(
            SyncPartitionsResponseTopic(
                name=topic.name,
                partitions=tuple(
                    SyncPartitionsResponsePartition(partition_index=index, error_code=errors[topic.name, index])
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics
        ),
    )

"""ListMetadataChanges (32041): what changed in the metadata after a version, as soon as something does."""

from collections.abc import Iterable, Iterator

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.metadata_changes import Change, ChangeKind
from headrace.core.controller.records import ResourceKind
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.limits import METADATA_CHANGE_WAIT_MS_MAX, METADATA_CHANGE_WAITS_MAX
from headrace.ports.disk import FileHandle
from headrace.wire.messages.list_metadata_changes import (
    ListMetadataChangesRequest,
    ListMetadataChangesResponse,
    ListMetadataChangesResponseBroker,
    ListMetadataChangesResponseConfig,
    ListMetadataChangesResponsePartition,
    ListMetadataChangesResponseTopic,
)

_REFUSED = ListMetadataChangesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def handle(request: ListMetadataChangesRequest, ctx: RequestContext) -> ListMetadataChangesResponse | Parked:
    if not _is_allowed(ctx):
        return _REFUSED
    changes = ctx.metadata_changes.after(request.after_version, ctx.image.version)
    if changes != [] or request.wait_ms <= 0:
        return _response(request, ctx, changes)
    if len(ctx.metadata_changes.waiting) >= METADATA_CHANGE_WAITS_MAX:
        return ListMetadataChangesResponse(
            error_code=ErrorCode.POLICY_VIOLATION, error_message="too many clients wait for changes of the metadata"
        )
    return _Wait(request, ctx).parked


def _is_allowed(ctx: RequestContext) -> bool:
    return ctx.authorized(Operation.DESCRIBE, AclResourceType.CLUSTER, CLUSTER_NAME)


class _Wait:
    """A request that waits for a change."""

    def __init__(self, request: ListMetadataChangesRequest, ctx: RequestContext) -> None:
        self._request = request
        self._ctx = ctx
        self.parked = ctx.park(
            timeout_ms=min(request.wait_ms, METADATA_CHANGE_WAIT_MS_MAX), on_timeout=self._nothing_changed
        )
        ctx.connection.parked[self] = None
        ctx.metadata_changes.waiting[self] = None

    def changed(self) -> None:
        """Respond, unless the client has seen the change at another broker."""
        if not _is_allowed(self._ctx):
            self._end()
            self.parked.complete(_REFUSED)
            return
        changes = self._ctx.metadata_changes.after(self._request.after_version, self._ctx.image.version)
        if changes != []:
            self._end()
            self.parked.complete(_response(self._request, self._ctx, changes))

    def answer_now(self) -> None:
        self.parked.complete(self._nothing_changed())

    def abandon(self) -> None:
        self._end()
        self.parked.abandoned()

    def files(self) -> Iterator[FileHandle]:
        return iter(())

    def _nothing_changed(self) -> ListMetadataChangesResponse:
        self._end()
        return _response(self._request, self._ctx, [])

    def _end(self) -> None:
        self._ctx.connection.parked.pop(self, None)
        self._ctx.metadata_changes.waiting.pop(self, None)


def _response(
    request: ListMetadataChangesRequest, ctx: RequestContext, changes: list[Change] | None
) -> ListMetadataChangesResponse:
    """Describe the present state of what changed. Without the changes, the client has to read everything again."""
    shown = [change for change in changes or () if _may_be_seen(change, ctx)]
    brokers = changes is None or any(change.kind is ChangeKind.BROKERS for change in shown)
    return ListMetadataChangesResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        version=max(ctx.image.version, request.after_version),
        is_complete=changes is not None,
        topics=tuple(_topic(change, ctx) for change in shown if change.kind <= ChangeKind.TOPIC_GREW),
        partitions=_partitions(shown, ctx),
        configs=tuple(
            ListMetadataChangesResponseConfig(resource_type=change.number, resource_name=change.name)
            for change in shown
            if change.kind is ChangeKind.CONFIGS
        ),
        brokers=_brokers(ctx) if brokers else None,
    )


def _may_be_seen(change: Change, ctx: RequestContext) -> bool:
    if change.kind is ChangeKind.BROKERS or (
        change.kind is ChangeKind.CONFIGS and change.number == ResourceKind.BROKER
    ):
        return True
    return ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, change.name)


def _topic(change: Change, ctx: RequestContext) -> ListMetadataChangesResponseTopic:
    found = ctx.image.topics.get(change.name)
    return ListMetadataChangesResponseTopic(
        name=change.name,
        topic_id=change.topic_id or (bytes(16) if found is None else found.topic_id),
        change=change.kind,
        partition_count=0 if found is None else len(found.partitions),
    )


def _partitions(changes: Iterable[Change], ctx: RequestContext) -> tuple[ListMetadataChangesResponsePartition, ...]:
    found = []
    for change in changes:
        state = ctx.image.partition(change.name, change.number) if change.kind is ChangeKind.PARTITION else None
        if state is not None:
            found.append(
                ListMetadataChangesResponsePartition(
                    topic=change.name,
                    partition_index=change.number,
                    leader_id=state.leader,
                    leader_epoch=state.leader_epoch,
                    replicas=state.replicas,
                    isr=state.isr,
                )
            )
    return tuple(found)


def _brokers(ctx: RequestContext) -> tuple[ListMetadataChangesResponseBroker, ...]:
    return tuple(
        ListMetadataChangesResponseBroker(
            broker_id=broker.node_id, is_fenced=broker.fenced, is_stopping=broker.in_controlled_shutdown
        )
        for broker in ctx.image.brokers.values()
    )

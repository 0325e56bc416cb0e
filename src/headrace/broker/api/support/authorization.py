"""Access checks that several handlers share."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from headrace.broker.api.context import RequestContext
from headrace.core.controller.image import ConfigResource
from headrace.core.controller.records import ResourceKind
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.addresses import is_loopback
from headrace.model.errors import ErrorCode

TOPIC_OPERATIONS = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)

GROUP_CONFIGS = 32
"""The kind of configs of groups (KIP-848). There are none, but access is checked first."""

Item = TypeVar("Item")


def authorized_operations(
    ctx: RequestContext, operations: tuple[Operation, ...], resource_type: AclResourceType, name: str
) -> int:
    """Return the bit field of those of `operations` that the client may perform."""
    return sum(1 << operation for operation in operations if ctx.authorized(operation, resource_type, name))


def cluster_operations(ctx: RequestContext) -> int:
    """Return the bit field of the operations on the cluster; none for a client that may not describe it."""
    if not ctx.authorized(Operation.DESCRIBE, AclResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return authorized_operations(ctx, CLUSTER_OPERATIONS, AclResourceType.CLUSTER, CLUSTER_NAME)


def split_by_access(items: Iterable[Item], is_allowed: Callable[[Item], bool]) -> tuple[list[Item], list[Item]]:
    """Split the items into allowed and refused ones, each in the order of the request."""
    allowed: list[Item] = []
    refused: list[Item] = []
    for item in items:
        (allowed if is_allowed(item) else refused).append(item)
    return allowed, refused


def may_create_topic(ctx: RequestContext, name: str) -> bool:
    return ctx.authorized(Operation.CREATE, AclResourceType.CLUSTER, CLUSTER_NAME) or ctx.authorized(
        Operation.CREATE, AclResourceType.TOPIC, name
    )


def config_access_error(ctx: RequestContext, operation: Operation, resource: ConfigResource) -> ErrorCode:
    """Return NONE when allowed; configs of resources other than topics and groups count as those of the cluster."""
    kind, name = resource
    of_topic = (AclResourceType.TOPIC, name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    of_group = (AclResourceType.GROUP, name, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    of_cluster = (AclResourceType.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    resource_type, name, error = {ResourceKind.TOPIC: of_topic, GROUP_CONFIGS: of_group}.get(kind, of_cluster)
    return ErrorCode.NONE if ctx.authorized(operation, resource_type, name) else error


def cluster_refusal(ctx: RequestContext, what: str) -> str | None:
    """Return the reason to refuse a change of the whole cluster; None if the client may make it."""
    if not ctx.authorized(Operation.ALTER, AclResourceType.CLUSTER, CLUSTER_NAME):
        return f"{what} only by a client that may alter the cluster"
    return stranger_refusal(ctx, what)


def stranger_refusal(ctx: RequestContext, what: str) -> str | None:
    """Return the reason to refuse `what` to a client on another machine; None if an authorizer decides, on loopback,
    or for another node of the cluster.

    Without an authorizer every principal is allowed everything. Requests that act on the whole cluster, or in the
    name of its coordinators, are then accepted only from the broker's own machine.
    """
    if ctx.connection.peer is not None or not ctx.access.open_to_all or is_loopback(ctx.connection.peer_host):
        return None
    reason = (
        f"{what} only from the broker's own machine, because it has no authorizer: this connection comes from "
        f"{ctx.connection.peer_host}; connect to a listener on 127.0.0.1"
    )
    ctx.logger.warning("request refused", peer=ctx.connection.transport.peer_address, reason=reason)
    return reason

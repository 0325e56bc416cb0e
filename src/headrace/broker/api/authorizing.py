"""Which parts of a request its sender may ask for."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from headrace.broker.api.context import RequestContext
from headrace.core.controller.image import ConfigResource
from headrace.core.controller.records import ResourceKind
from headrace.model.access import CLUSTER_NAME, Operation, ResourceType
from headrace.model.errors import ErrorCode

Item = TypeVar("Item")


def split_by_access(items: Iterable[Item], is_allowed: Callable[[Item], bool]) -> tuple[list[Item], list[Item]]:
    """What may be asked for and what may not, each in the order of the request."""
    allowed: list[Item] = []
    refused: list[Item] = []
    for item in items:
        (allowed if is_allowed(item) else refused).append(item)
    return allowed, refused


def config_access_error(ctx: RequestContext, operation: Operation, resource: ConfigResource) -> ErrorCode:
    """NONE when allowed; configs of anything but topics belong to the cluster."""
    kind, name = resource
    if kind == ResourceKind.TOPIC:
        allowed = ctx.authorized(operation, ResourceType.TOPIC, name)
        return ErrorCode.NONE if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allowed = ctx.authorized(operation, ResourceType.CLUSTER, CLUSTER_NAME)
    return ErrorCode.NONE if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED

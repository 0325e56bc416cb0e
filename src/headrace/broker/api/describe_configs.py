"""DescribeConfigs (32): every config of topics and brokers, with the source of its value.

Defaults are listed too: a tool that reads all configs, changes one and writes all back would delete any that are
missing.
"""

from collections.abc import Iterable

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import config_access_error
from headrace.broker.api.support.linearizable import NOT_CONFIRMED, respond_when_confirmed
from headrace.broker.api.support.sliced_response import respond_in_slices
from headrace.broker.partitions.soundness import with_level_in_force
from headrace.core.controller.commands import Refused
from headrace.core.controller.configs import EVERY_BROKER, check_resource_exists
from headrace.core.controller.records import ResourceKind
from headrace.model.access import Operation
from headrace.model.configs import BROKER_CONFIGS, ConfigLayer, LayeredConfig, Synonym
from headrace.model.errors import ErrorCode
from headrace.wire.errors import ProtocolError
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestResource,
    DescribeConfigsResponse,
    DescribeConfigsResponseConfig,
    DescribeConfigsResponseResult,
    DescribeConfigsResponseSynonym,
)

RESOURCES_PER_SLICE = 20
RESOURCES_MAX = 100_000


def handle(request: DescribeConfigsRequest, ctx: RequestContext) -> Parked:
    if len(request.resources) > RESOURCES_MAX:
        raise ProtocolError(f"DescribeConfigs of {len(request.resources)} resources: the limit is {RESOURCES_MAX}")
    return respond_when_confirmed(ctx, lambda: _respond(request, ctx), lambda: _refused(request, ctx))


def _refused(request: DescribeConfigsRequest, ctx: RequestContext) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        results=tuple(
            DescribeConfigsResponseResult(
                error_code=ErrorCode.NOT_CONTROLLER,
                error_message=NOT_CONFIRMED,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ),
    )


def _respond(request: DescribeConfigsRequest, ctx: RequestContext) -> DescribeConfigsResponse | Parked:
    return respond_in_slices(
        ctx,
        request.resources,
        lambda resource: _described(request, ctx, resource),
        lambda results: DescribeConfigsResponse(throttle_time_ms=ctx.throttle_time_ms, results=tuple(results)),
        per_slice=RESOURCES_PER_SLICE,
    )


def _described(
    request: DescribeConfigsRequest, ctx: RequestContext, resource: DescribeConfigsRequestResource
) -> DescribeConfigsResponseResult:
    kind, name = resource.resource_type, resource.resource_name
    try:
        error = config_access_error(ctx, Operation.DESCRIBE_CONFIGS, (kind, name))
        if error is not ErrorCode.NONE:
            raise Refused(error, "not authorized to see these configs")
        check_resource_exists(ctx.image, (kind, name))
        _check_is_here(ctx, kind, name)
    except Refused as refusal:
        return DescribeConfigsResponseResult(
            error_code=refusal.code, error_message=refusal.message, resource_type=kind, resource_name=name
        )
    wanted = frozenset(resource.configuration_keys or ())
    return DescribeConfigsResponseResult(
        error_message=None,
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            _config(request, entry) for entry in _entries(ctx, kind, name) if not wanted or entry.key.name in wanted
        ),
    )


def _entries(ctx: RequestContext, kind: int, name: str) -> Iterable[LayeredConfig]:
    if kind == ResourceKind.TOPIC:
        topic = ctx.image.topics.get(name)
        replicas = 1 if topic is None else topic.replication_factor
        return with_level_in_force(ctx.config.describe_topic(ctx.image.topic_configs(name), replicas=replicas))
    if name == EVERY_BROKER:
        return _cluster_defaults(ctx)
    return with_level_in_force(ctx.config.describe())


def _check_is_here(ctx: RequestContext, kind: int, name: str) -> None:
    """Refuse the configs of another broker: only that broker knows its file and its command line."""
    if kind == ResourceKind.BROKER and name != EVERY_BROKER and int(name) != ctx.node_id:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"this is broker {ctx.node_id}: ask broker {name} itself for its configs"
        )


def _cluster_defaults(ctx: RequestContext) -> Iterable[LayeredConfig]:
    """Yield the configs that were set for every broker; all others belong to single brokers."""
    for name, value in ctx.image.cluster_configs().items():
        key = BROKER_CONFIGS.lookup(name)
        shown = None if key.sensitive else value
        source = ConfigLayer.DYNAMIC_DEFAULT_BROKER
        yield LayeredConfig(key, shown, source, False, (Synonym(name, shown, source),))


def _config(request: DescribeConfigsRequest, entry: LayeredConfig) -> DescribeConfigsResponseConfig:
    return DescribeConfigsResponseConfig(
        name=entry.key.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_default=entry.source is ConfigLayer.DEFAULT,
        is_sensitive=entry.key.sensitive,
        synonyms=tuple(
            DescribeConfigsResponseSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        )
        if request.include_synonyms
        else (),
        config_type=entry.key.type,
        documentation=entry.key.description if request.include_documentation else None,
    )

"""Describe and change configs of topics and brokers."""

from collections.abc import Iterable, Mapping, Sequence

from headrace.client.core.calls import ANY_BROKER, Call, Operation, ask
from headrace.client.core.cluster import Cluster, fetch_metadata
from headrace.client.errors import BrokerError, ClientError, InvalidArgument
from headrace.client.types import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    Outcome,
    ResourceType,
)
from headrace.model.errors import error_code
from headrace.wire.messages import describe_configs as describe_configs_api
from headrace.wire.messages import incremental_alter_configs as alter_configs_api
from headrace.wire.messages import list_config_resources as list_resources_api

_KNOWN_TYPES = frozenset(ResourceType)


def describe_configs(
    cluster: Cluster, resources: Iterable[tuple[int, str]], *, with_documentation: bool
) -> Operation[dict[ConfigResource, tuple[ConfigEntry, ...]]]:
    """Return every config of each resource, sorted by name; a resource that does not exist raises its error."""
    groups = yield from _by_target(cluster, [_resource(resource) for resource in resources])
    replies = yield tuple(
        Call(
            describe_configs_api,
            describe_configs_api.DescribeConfigsRequest(
                resources=tuple(
                    describe_configs_api.DescribeConfigsRequestResource(
                        resource_type=resource.type, resource_name=resource.name, configuration_keys=None
                    )
                    for resource in owned
                ),
                include_synonyms=True,
                include_documentation=with_documentation,
            ),
            target,
        )
        for target, owned in groups.items()
    )
    described: dict[ConfigResource, tuple[ConfigEntry, ...]] = {}
    for reply in replies:
        if isinstance(reply, ClientError):
            raise reply
        for result in reply.results:
            resource = _resource((result.resource_type, result.resource_name))
            if result.error_code:
                what = f"the configs of {resource.type.name.lower()} {resource.name!r} could not be described"
                raise BrokerError(result.error_code, what, result.error_message)
            described[resource] = tuple(sorted(map(_entry, result.configs), key=lambda entry: entry.name))
    return described


def config_resources(types: Iterable[int]) -> Operation[tuple[ConfigResource, ...]]:
    """List the resources that have configs, of these types or of all that the broker lists (KIP-1142)."""
    wanted = tuple(types)
    request = list_resources_api.ListConfigResourcesRequest(resource_types=wanted)
    # Before version 1 only the names of metrics subscriptions were listed.
    response = yield from ask(list_resources_api, request, min_version=1)
    if response.error_code:
        raise BrokerError(response.error_code, "the config resources could not be listed")
    return tuple(
        sorted(
            ConfigResource(ResourceType(each.resource_type), each.resource_name)
            for each in response.config_resources
            if each.resource_type in _KNOWN_TYPES
        )
    )


def alter_configs(
    cluster: Cluster, changes: Mapping[tuple[int, str], Sequence[ConfigChange]], *, validate_only: bool
) -> Operation[dict[ConfigResource, Outcome]]:
    """Change single configs of each resource (KIP-339); the others are not affected."""
    wanted = {_resource(resource): tuple(steps) for resource, steps in changes.items()}
    groups = yield from _by_target(cluster, list(wanted))
    replies = yield tuple(
        Call(
            alter_configs_api,
            alter_configs_api.IncrementalAlterConfigsRequest(
                resources=tuple(_alteration(resource, wanted[resource]) for resource in owned),
                validate_only=validate_only,
            ),
            target,
        )
        for target, owned in groups.items()
    )
    outcomes: dict[ConfigResource, Outcome] = {}
    for reply in replies:
        if isinstance(reply, ClientError):
            raise reply
        for result in reply.responses:
            resource = _resource((result.resource_type, result.resource_name))
            outcomes[resource] = Outcome(error_code(result.error_code), result.error_message or None)
    return outcomes


def _by_target(cluster: Cluster, resources: list[ConfigResource]) -> Operation[dict[int, list[ConfigResource]]]:
    """Group resources by the broker to ask: a broker's own configs by that broker; those of topics and of all brokers
    (no name) by any.
    """
    groups: dict[int, list[ConfigResource]] = {}
    for resource in resources:
        target = ANY_BROKER
        if resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name:
            try:
                target = int(resource.name)
            except ValueError:
                raise InvalidArgument(f"a broker is given by its node id, not {resource.name!r}") from None
        groups.setdefault(target, []).append(resource)
    if any(target != ANY_BROKER and target not in cluster.brokers for target in groups):
        cluster.learn((yield from fetch_metadata(())))
    return groups


def _resource(resource: tuple[int, str]) -> ConfigResource:
    kind, name = resource
    try:
        return ConfigResource(ResourceType(kind), name)
    except ValueError:
        raise InvalidArgument(f"the resource type {kind} has no configs") from None


def _alteration(
    resource: ConfigResource, steps: Sequence[ConfigChange]
) -> alter_configs_api.IncrementalAlterConfigsRequestResource:
    return alter_configs_api.IncrementalAlterConfigsRequestResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=tuple(
            alter_configs_api.IncrementalAlterConfigsRequestConfig(
                name=step.name, config_operation=ConfigOperation(step.operation), value=step.value
            )
            for step in steps
        ),
    )


def _entry(config: describe_configs_api.DescribeConfigsResponseConfig) -> ConfigEntry:
    source = _source(config.config_source)
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=source,
        is_default=config.is_default or source == ConfigSource.DEFAULT,
        read_only=config.read_only,
        sensitive=config.is_sensitive,
        type=config.config_type,
        documentation=config.documentation or None,
        synonyms=tuple(ConfigSynonym(name.name, name.value, _source(name.source)) for name in config.synonyms),
    )


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN

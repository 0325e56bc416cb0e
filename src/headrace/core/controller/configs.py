"""Decide on configs of topics, of one broker and of every broker: set, delete, append and subtract."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from headrace.core.controller.commands import (
    CONFIGS_PER_REQUEST_MAX,
    RESOURCES_PER_REQUEST_MAX,
    AlterableConfig,
    AlterOperation,
    ConfigAlteration,
    ConfigReplacement,
    ConfigResult,
    ControllerDecision,
    Refused,
)
from headrace.core.controller.elections import ELECTION_CONFIGS, elections_after
from headrace.core.controller.image import NO_CONFIGS, ConfigResource, MetadataImage
from headrace.core.controller.names import check_topic_name
from headrace.core.controller.records import ConfigRecord, Record, ResourceKind
from headrace.core.controller.settings import ControllerSettings
from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigError, ConfigKey, ConfigTable
from headrace.model.configs.definition import render_value
from headrace.model.configs.layers import BrokerLayers
from headrace.model.configs.values import check_broker_change, check_topic
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId

EVERY_BROKER = ""
"""The broker name that stands for the default of the whole cluster."""

ConfigDecision = ControllerDecision[tuple[ConfigResult, ...]]


def check_new_topic_configs(topic: str, configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """Check the configs a topic is created with; the last of a repeated name counts."""
    chosen: dict[str, str] = {}
    for name, value in configs:
        if value is None:
            raise Refused(ErrorCode.INVALID_CONFIG, f'config "{name}" for topic "{topic}" has no value')
        chosen[name] = value
    _check_topic_configs(topic, chosen)
    for name, value in chosen.items():
        _check_served((ResourceKind.TOPIC, topic), name, value)
    return chosen


def alter_configs(
    image: MetadataImage, settings: ControllerSettings, alterations: Sequence[ConfigAlteration], *, validate_only: bool
) -> ConfigDecision:
    """Change single configs of each resource (IncrementalAlterConfigs)."""
    wanted = [((asked.resource_kind, asked.resource_name), asked.changes) for asked in alterations]
    return _decide(image, settings, wanted, from_nothing=False, validate_only=validate_only)


def replace_configs(
    image: MetadataImage,
    settings: ControllerSettings,
    replacements: Sequence[ConfigReplacement],
    *,
    validate_only: bool,
) -> ConfigDecision:
    """Set all configs of each resource at once (the older AlterConfigs)."""
    wanted = [
        (
            (asked.resource_kind, asked.resource_name),
            [AlterableConfig(name, AlterOperation.SET, value) for name, value in asked.configs],
        )
        for asked in replacements
    ]
    return _decide(image, settings, wanted, from_nothing=True, validate_only=validate_only)


def _decide(
    image: MetadataImage,
    settings: ControllerSettings,
    wanted: Sequence[tuple[ConfigResource, Sequence[AlterableConfig]]],
    *,
    from_nothing: bool,
    validate_only: bool,
) -> ConfigDecision:
    asked = Counter(resource for resource, _ in wanted)
    too_large = len(wanted) > RESOURCES_PER_REQUEST_MAX or sum(len(c) for _, c in wanted) > CONFIGS_PER_REQUEST_MAX
    records: list[Record] = []
    changed: dict[ConfigResource, Mapping[str, str]] = {}
    results: dict[ConfigResource, ConfigResult] = {}
    for resource, changes in wanted:
        if resource in results:
            continue  # a resource that is requested twice gets one response, with its error
        current = image.configs.get(resource, NO_CONFIGS)
        try:
            if too_large:
                raise Refused(
                    ErrorCode.POLICY_VIOLATION,
                    f"one request may change at most {CONFIGS_PER_REQUEST_MAX} configs: send several requests",
                )
            if asked[resource] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f"{_subject(resource)} is listed more than once")
            check_resource_exists(image, resource)
            layers = BrokerLayers(static=settings.static_configs, dynamic_default=image.cluster_configs())
            altered = _altered(layers, resource, NO_CONFIGS if from_nothing else current, changes)
        except Refused as refusal:
            results[resource] = ConfigResult(*resource, refusal.code, refusal.message)
            continue
        differences = tuple(_difference(resource, current, altered))
        if any(record.name in ELECTION_CONFIGS for record in differences):
            changed[resource] = altered
        records += differences
        results[resource] = ConfigResult(*resource)
    records += elections_after(image, settings, changed)
    return ControllerDecision(() if validate_only else tuple(records), tuple(results.values()))


# The resource


def check_resource_exists(image: MetadataImage, resource: ConfigResource) -> None:
    kind, name = resource
    if kind == ResourceKind.TOPIC:
        check_topic_name(name)
        if name not in image.topics:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic "{name}" does not exist')
    elif kind == ResourceKind.BROKER:
        if name != EVERY_BROKER and not _is_broker(image, name):
            known = ", ".join(str(node) for node in image.brokers)
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f'no broker has the node id "{name[:20]}": use one of {known}, or the empty name for every broker',
            )
    else:
        raise Refused(ErrorCode.INVALID_REQUEST, f"resource type {kind} has no configs: use topic (2) or broker (4)")


def _is_broker(image: MetadataImage, name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) <= 10 and NodeId(int(name)) in image.brokers


def _subject(resource: ConfigResource) -> str:
    kind, name = resource
    if kind == ResourceKind.TOPIC:
        return f'topic "{name}"'
    return "every broker" if name == EVERY_BROKER else f"broker {name}"


def _table(resource: ConfigResource) -> ConfigTable:
    return TOPIC_CONFIGS if resource[0] == ResourceKind.TOPIC else BROKER_CONFIGS


# The changes


def _altered(
    layers: BrokerLayers, resource: ConfigResource, current: Mapping[str, str], changes: Sequence[AlterableConfig]
) -> dict[str, str]:
    """Return the resource's own configs after the changes."""
    repeated = [name for name, count in Counter(change.name for change in changes).items() if count > 1]
    if repeated:
        raise Refused(ErrorCode.INVALID_REQUEST, f'config "{repeated[0]}" is listed more than once')
    altered = dict(current)
    for change in changes:
        if change.operation == AlterOperation.DELETE:
            if altered.pop(change.name, None) is None:
                _key(resource, change.name)  # deleting a config that is not set is allowed, unless it cannot exist
        else:
            altered[change.name] = _new_value(layers, resource, current, change)
            if resource[0] == ResourceKind.BROKER:
                _check_broker_change(resource, change.name, altered[change.name])
            elif altered[change.name] != current.get(change.name):
                _check_served(resource, change.name, altered[change.name])
    if resource[0] == ResourceKind.TOPIC:
        _check_topic_configs(resource[1], altered)
    return altered


def _new_value(
    layers: BrokerLayers, resource: ConfigResource, current: Mapping[str, str], change: AlterableConfig
) -> str:
    key = _key(resource, change.name)
    if change.value is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f'config "{change.name}" for {_subject(resource)} has no value')
    table = _table(resource)
    try:
        match change.operation:
            case AlterOperation.SET:
                return change.value
            case AlterOperation.APPEND:
                in_force = _in_force(layers, resource, current, key)
                return table.appended(key.name, in_force, change.value, subject=_subject(resource))
            case AlterOperation.SUBTRACT:
                in_force = _in_force(layers, resource, current, key)
                return table.subtracted(key.name, in_force, change.value, subject=_subject(resource))
    except ConfigError as wrong:
        raise Refused(ErrorCode.INVALID_CONFIG, str(wrong)) from None
    raise Refused(
        ErrorCode.INVALID_REQUEST,
        f"operation {change.operation} is unknown: use set (0), delete (1), append (2) or subtract (3)",
    )


def _in_force(layers: BrokerLayers, resource: ConfigResource, current: Mapping[str, str], key: ConfigKey) -> str | None:
    """Return the value to append to or subtract from: the resource's own value, or the inherited one."""
    if key.name in current:
        return current[key.name]
    value = layers.topic_value(key, NO_CONFIGS) if resource[0] == ResourceKind.TOPIC else layers.value(key.name)
    return render_value(value)


def _key(resource: ConfigResource, name: str) -> ConfigKey:
    try:
        return _table(resource).lookup(name, subject=_subject(resource))
    except ConfigError as wrong:
        raise Refused(ErrorCode.INVALID_CONFIG, str(wrong)) from None


def _check_topic_configs(topic: str, configs: Mapping[str, str]) -> None:
    try:
        check_topic(configs, topic=topic)
    except ConfigError as wrong:
        raise Refused(ErrorCode.INVALID_CONFIG, str(wrong)) from None


def _check_served(resource: ConfigResource, name: str, value: str) -> None:
    try:
        _table(resource).check_served(name, value, subject=_subject(resource))
    except ConfigError as wrong:
        raise Refused(ErrorCode.INVALID_CONFIG, str(wrong)) from None


def _check_broker_change(resource: ConfigResource, name: str, value: str) -> None:
    """Check a broker config. Kafka calls a config that a running broker cannot change an invalid request, not an
    invalid config.
    """
    try:
        check_broker_change(name, value, every_broker=resource[1] == EVERY_BROKER)
    except ConfigError as wrong:
        raise Refused(ErrorCode.INVALID_REQUEST, str(wrong)) from None


def _difference(
    resource: ConfigResource, current: Mapping[str, str], altered: Mapping[str, str]
) -> Iterator[ConfigRecord]:
    for name in dict.fromkeys((*current, *altered)):
        if current.get(name) != altered.get(name):
            yield ConfigRecord(*resource, name, altered.get(name))

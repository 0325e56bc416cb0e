"""Requests of the tests of the administration APIs, and the state that they look at."""

import pytest

from headrace.broker.api.registry import SERVED
from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    create_topics,
    describe_configs,
    incremental_alter_configs,
)

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS = 2, 4, 8, 16
SET, DELETE, APPEND, SUBTRACT = range(4)
VERSIONS = {api.key: range(api.min_version, api.max_version + 1) for api in SERVED}


def each_version(key):
    return pytest.mark.parametrize("version", VERSIONS[key])


def image(node):
    return node.machine.node.broker.image


def create(client, *topics, version=7, timeout_ms=30_000, validate_only=False):
    request = create_topics.CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)
    return client.ask(ApiKey.CREATE_TOPICS, version, request).topics


def topic(name, partitions=1, factor=1, **others):
    return create_topics.CreateTopicsRequestTopic(
        name=name, num_partitions=partitions, replication_factor=factor, **others
    )


def config(name, value):
    return create_topics.CreateTopicsRequestConfig(name=name, value=value)


def alter(client, *changes, kind=TOPIC, name="orders", version=1):
    resource = incremental_alter_configs.IncrementalAlterConfigsRequestResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            incremental_alter_configs.IncrementalAlterConfigsRequestConfig(
                name=change[0], config_operation=change[1], value=change[2]
            )
            for change in changes
        ),
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(resource,))
    (result,) = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, request).responses
    return result


def describe(client, kind, name, *, keys=None, version=4, **options):
    resource = describe_configs.DescribeConfigsRequestResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = describe_configs.DescribeConfigsRequest(resources=(resource,), **options)
    (result,) = client.ask(ApiKey.DESCRIBE_CONFIGS, version, request).results
    return result

"""Well-formed requests with senseless content: every API in every version answers or closes; nothing fails inside."""

import json
from random import Random

import pytest

from headrace.broker.api.registry import SERVED
from headrace.wire import frames
from headrace.wire.apis import ApiKey
from tests.broker.virtual import VirtualBroker
from tests.wire import samples

REQUESTS_PER_VERSION = 25
HARMLESS_WAIT_MS = 50


@pytest.fixture(scope="module")
def broker():
    return (
        VirtualBroker(settings={"auto.create.topics.enable": "true"})
        .with_topic("healthy", partitions=2)
        .with_topic("t")
    )


def request_table(key):
    return next(
        message for message in samples.MESSAGES.values() if message.kind == "Request" and message.api_key == key
    )


@pytest.mark.parametrize("api", SERVED, ids=lambda api: api.key.name)
def test_senseless_requests_never_fail_inside_the_broker(broker, api):
    random = Random(int(api.key))
    table = request_table(api.key)
    healthy = broker.client()
    before, sent = broker.metrics.requests[api.key], 0
    for version in range(api.min_version, api.max_version + 1):
        for _ in range(REQUESTS_PER_VERSION):
            body = samples.encode(table, samples.sample(table, version, random), version)
            client = broker.client()
            client.send_bytes(frames.request_frame(api.key, version, 7, "any", body))
            sent += 1
            for _ in range(20):
                broker.world.step()
                if client.connection.receive() or client.is_closed():
                    break
            client.close()
        assert healthy.produce_error("healthy", 0) == 0, f"version {version}"
    broker.pass_time(HARMLESS_WAIT_MS)
    failures = [json.loads(line) for line in broker.log_lines if "failed inside the broker" in line]
    assert failures == []
    assert broker.metrics.requests[api.key] - before >= 0.9 * sent, "they were read and handled"
    assert broker.metrics.handler_failures == 0


@pytest.mark.parametrize("api", SERVED, ids=lambda api: api.key.name)
def test_requests_cut_off_anywhere_never_fail_inside_the_broker(broker, api):
    random = Random(100 + int(api.key))
    table = request_table(api.key)
    for version in {api.min_version, api.max_version, (api.min_version + api.max_version) // 2}:
        body = samples.encode(table, samples.sample(table, version, random, 2), version)
        cuts = range(len(body)) if len(body) < 60 else sorted(random.sample(range(len(body)), 60))
        for cut in cuts:
            client = broker.client()
            client.send_bytes(frames.request_frame(api.key, version, 7, "cut", body[:cut]))
            broker.steps(2)
            client.close()
    broker.steps()
    assert broker.metrics.handler_failures == 0
    assert broker.client().produce_error("healthy", 1) == 0


def test_every_api_is_tried():
    assert {api.key for api in SERVED} <= {ApiKey(message.api_key) for message in samples.MESSAGES.values()}

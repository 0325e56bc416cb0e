"""The audit log of a virtual broker: changes are in it before they are answered, and its files are limited."""

import errno
import json

import pytest

from headrace.broker.api.registry import SERVED
from headrace.broker.api.support.audit import CHANGES
from headrace.model.errors import ErrorCode
from headrace.model.limits import AUDIT_RETRY_MS
from headrace.ports.spawner import Lane
from headrace.wire.apis import ApiKey
from headrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsRequestTopic
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsRequestResource
from tests.broker.virtual import TOPIC_RESOURCE, VirtualBroker, new_topic
from tests.peers.nodes import CLIENT_PORT, PeerWorld
from tests.peers.test_forwarded_requests import Follower
from tests.peers.test_listener import Caller

FOLDER = "data/audit"
FILE = f"{FOLDER}/audit-1.jsonl"
SETTINGS = {"headrace.audit.dir": FOLDER}


def lines(broker, file=FILE, disk=None):
    disk = disk or broker.machine.disk
    if not disk.exists(file):
        return []
    handle = disk.open(file, writable=False)
    try:
        return [json.loads(line) for line in disk.read(handle, disk.size(handle), 0).splitlines()]
    finally:
        disk.close(handle)


@pytest.fixture
def broker():
    return VirtualBroker(settings=SETTINGS)


def test_a_change_is_in_the_file_when_it_is_answered(broker):
    client = broker.client(from_host="10.0.0.9")
    client.create_topic("orders")
    (line,) = lines(broker)
    assert line.pop("time").endswith("Z")
    assert line.pop("request_id") >= 0
    assert line.pop("client_id")
    assert line == {
        "node": 1, "kind": "change", "action": "create_topics", "outcome": "done", "principal": "User:ANONYMOUS",
        "address": "10.0.0.9", "listener": "PLAINTEXT", "resources": ["topic orders"], "count": 1,
    }  # fmt: skip


def test_values_of_configs_are_not_told(broker):
    client = broker.client()
    client.create_topic("orders", configs={"headrace.compact.request": "hush"})
    client.alter_configs(TOPIC_RESOURCE, "orders", {"headrace.compact.request": "hush-hush", "retention.ms": "123456"})
    client.alter_configs(TOPIC_RESOURCE, "orders", {"retention.ms": "hush"})
    found = lines(broker)
    assert found[1]["resources"] == ["topic orders: headrace.compact.request, retention.ms"]
    assert (found[2]["outcome"], found[2]["errors"]) == ("failed", ["orders: INVALID_CONFIG"])
    assert "hush" not in json.dumps(found)
    assert "123456" not in json.dumps(found)


def test_the_parts_that_failed_are_named(broker):
    client = broker.client()
    client.create_topic("orders")
    topics = tuple(
        CreateTopicsRequestTopic(name=name, num_partitions=1, replication_factor=1) for name in ("orders", "x")
    )
    client.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=30_000))
    trial = CreateTopicsRequest(topics=(new_topic("trial"),), timeout_ms=30_000, validate_only=True)
    client.ask(ApiKey.CREATE_TOPICS, 7, trial)
    last = lines(broker)[-1]
    assert (last["outcome"], last["errors"]) == ("partly done", ["orders: TOPIC_ALREADY_EXISTS"])
    assert last["resources"] == ["topic orders", "topic x"]


def test_every_request_for_the_controller_is_audited():
    asked = {ApiKey.DESCRIBE_QUORUM, ApiKey.LIST_PARTITION_REASSIGNMENTS}
    assert {api.key for api in SERVED if api.on_controller} - asked <= CHANGES.keys()


def test_topics_that_metadata_creates_are_changes():
    broker = VirtualBroker(settings={**SETTINGS, "auto.create.topics.enable": "true"})
    client = broker.client()
    client.metadata("orders", allow_creation=True)
    broker.run_until(lambda: lines(broker))
    (line,) = lines(broker)
    assert (line["action"], line["resources"]) == ("create_topics_automatically", ["topic orders"])


def test_a_loss_of_power_keeps_the_changes_that_were_answered(broker):
    broker.client().create_topic("orders")
    broker.machine.cut_power()
    broker.boot()
    assert [line["resources"] for line in lines(broker)] == [["topic orders"]]
    broker.client().create_topic("bills")
    assert [line["resources"] for line in lines(broker)] == [["topic orders"], ["topic bills"]]


def test_a_full_disk_delays_lines_and_not_answers(broker):
    client = broker.client()
    client.create_topic("first")
    broker.machine.disk.faults.fail("write_vector", code=errno.ENOSPC, path_contains="audit-1", times=2)
    client.create_topic("second")
    client.create_topic("third")
    assert [line["resources"] for line in lines(broker)] == [["topic first"]]
    assert any("the audit log cannot be written" in line for line in broker.log_lines)
    for _ in range(2):
        broker.pass_time(AUDIT_RETRY_MS)
    assert [line["resources"][0] for line in lines(broker)] == ["topic first", "topic second", "topic third"]


def test_answers_wait_once_too_many_lines_do(broker, monkeypatch):
    monkeypatch.setattr("headrace.broker.audit_log.AUDIT_LINES_MAX", 2)
    client = broker.client()
    broker.machine.disk.faults.fail("write_vector", code=errno.ENOSPC, path_contains="audit-1", times=1_000)
    client.create_topic("first")
    asked = client.send(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=(new_topic("second"),), timeout_ms=30_000))
    broker.pass_time(2 * AUDIT_RETRY_MS)
    assert not client.has_answer(asked)
    broker.machine.disk.faults.heal()
    broker.pass_time(2 * AUDIT_RETRY_MS)
    assert client.has_answer(asked)
    assert [line["resources"][0] for line in lines(broker)] == ["topic first", "topic second"]


def test_a_full_file_is_replaced_and_old_ones_are_removed():
    broker = VirtualBroker(
        settings={**SETTINGS, "headrace.audit.file.bytes.max": "4096", "headrace.audit.files.max": "3"}
    )
    client = broker.client()
    for number in range(80):
        client.create_topic(f"t{number}")
        client.delete_topic(f"t{number}")
    assert broker.machine.disk.list_directory(FOLDER) == ["audit-1.jsonl", "audit-1.jsonl.1", "audit-1.jsonl.2"]
    kept = [line for file in (f"{FILE}.2", f"{FILE}.1", FILE) for line in lines(broker, file)]
    names = [line["resources"][0] for line in kept]
    assert names == [f"topic t{number}" for number in range(80) for _ in range(2)][-len(names) :]
    assert all(
        broker.machine.disk.file_size(f"{FOLDER}/{name}") < 4096 + 1000
        for name in broker.machine.disk.list_directory(FOLDER)
    )


def test_a_stop_writes_the_counts(broker):
    """Logins and refusals that wait for the end of their window are in the file after a clean stop."""
    resources = (DescribeConfigsRequestResource(resource_type=TOPIC_RESOURCE, resource_name="x"),)
    broker.stop()
    broker.settings |= {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    broker.boot()
    client = broker.client(from_host="10.0.0.9")
    for _ in range(5):
        answer = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=resources))
        assert answer.results[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    broker.stop()
    found = [(line["action"], line["outcome"], line["resources"], line["count"]) for line in lines(broker)]
    assert found == [("describe_configs", "refused", ["topic x"], 1), ("describe_configs", "refused", ["topic x"], 4)]


def test_a_stop_during_a_write_repeats_no_line(broker):
    """The helper has written a line, and the loop does not come to hear of it."""
    client = broker.client()
    client.create_topic("first")
    submit = broker.machine.spawner.submit
    heard = []

    def submit_unheard(operation, completed, lane=Lane.OTHER):
        if lane is Lane.AUDIT:
            operation()
            heard.append(completed)
        else:
            submit(operation, completed, lane)

    broker.machine.spawner.submit = submit_unheard
    client.send(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=(new_topic("second"),), timeout_ms=30_000))
    broker.run_until(lambda: heard)
    broker.node.close()
    broker.machine.stopped()
    assert [line["resources"][0] for line in lines(broker)] == ["topic first", "topic second"]


def test_a_forwarded_change_has_the_address_of_its_own_client():
    world = PeerWorld()
    one, two = world.pair(settings=SETTINGS)
    two.node.broker.controller = Follower(two.node.broker.controller, leader=1)
    caller = Caller(world, two, port=CLIENT_PORT, from_host="10.0.0.77")
    creation = CreateTopicsRequest(topics=(new_topic("orders"),), timeout_ms=30_000)
    caller.send(ApiKey.CREATE_TOPICS, 7, creation, number=5)
    assert caller.answer(ApiKey.CREATE_TOPICS, 7)[0] == 5
    (line,) = lines(one)
    assert (line["address"], line["node"], line["request_id"], line["resources"]) == (
        "10.0.0.77",
        1,
        5,
        ["topic orders"],
    )
    assert lines(two, f"{FOLDER}/audit-2.jsonl") == []

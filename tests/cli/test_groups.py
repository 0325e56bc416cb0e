"""`headrace groups` against a broker."""

import json

import confluent_kafka
import pytest

from headrace.client import Admin
from headrace.client.core.connection import REQUESTS_IN_FLIGHT_MAX
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.testing import EmbeddedBroker
from tests.cli.conftest import Headrace

pytestmark = pytest.mark.process

WAIT_S = 30


@pytest.fixture
def group(headrace: Headrace, broker: EmbeddedBroker, topic: str) -> str:
    """A group of this test alone that has read two of the topic's records in each of two partitions."""
    for partition in (0, 1):
        headrace("produce", topic, "--partition", str(partition), input="a\nb\nc\n")
    name = f"group-{topic}"
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": name})
    parts = [confluent_kafka.TopicPartition(topic, partition, 2) for partition in (0, 1)]
    consumer.commit(offsets=parts, asynchronous=False)
    consumer.close()
    return name


def offsets(headrace: Headrace, group: str) -> dict[int, int]:
    (described,) = json.loads(headrace("groups", "describe", group, "--json").stdout)
    return {each["partition"]: each["committed"] for each in described["partitions"]}


def test_list(headrace: Headrace, group: str) -> None:
    assert [group, "Empty", "classic", "-"] in [line.split() for line in headrace("groups", "list").stdout.splitlines()]
    listed = json.loads(headrace("groups", "list", "--state", "Empty", "--json").stdout)
    assert {"group": group, "protocol_type": "", "state": "Empty", "type": "classic"} in listed
    stable = json.loads(headrace("groups", "list", "--state", "Stable", "--json").stdout)
    assert group not in {each["group"] for each in stable}


def test_describe_and_lag(headrace: Headrace, group: str, topic: str) -> None:
    shown = headrace("groups", "describe", group).stdout.splitlines()
    assert shown[0] == f'group "{group}": Empty, 0 members, coordinator 1'
    assert [line.split() for line in shown[2:]] == [
        [topic, "0", "2", "3", "1", "-"],
        [topic, "1", "2", "3", "1", "-"],
    ]
    lag = headrace("groups", "lag", group).stdout.splitlines()
    assert lag[1].split() == [group, topic, "2", "2"]
    assert {"group": group, "topic": topic, "partitions": 2, "lag": 2} in json.loads(
        headrace("groups", "lag", "--json").stdout
    )


def test_members(headrace: Headrace, broker: EmbeddedBroker, group: str, topic: str) -> None:
    assert headrace("groups", "members", group).stdout == f'group "{group}" has no members\n'
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "group.instance.id": "one"}
    )
    consumer.subscribe([topic])
    while len(consumer.assignment()) < 3:
        consumer.poll(0.05)
    (member,) = json.loads(headrace("groups", "members", group, "--json").stdout)
    assert (member["instance_id"], member["client_id"]) == ("one", "rdkafka")
    assert member["partitions"] == [f"{topic}-{partition}" for partition in range(3)]
    assert member["member_id"] in headrace("groups", "describe", group).stdout
    refused = headrace("groups", "reset", group, "--to-earliest", "--yes", exit_code=1)
    assert "stop its members first" in refused.stderr
    refused = headrace("groups", "delete", group, "--yes", exit_code=1)
    assert "NON_EMPTY_GROUP (stop its members first)" in refused.stderr
    consumer.close()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--to-earliest",), {0: 0, 1: 0}),
        (("--to-latest",), {0: 3, 1: 3}),
        (("--to-offset", "1"), {0: 1, 1: 1}),
        (("--to-offset", "99"), {0: 3, 1: 3}),
        (("--shift", "-1"), {0: 1, 1: 1}),
        (("--shift", "-9"), {0: 0, 1: 0}),
        (("--to-time", "1d"), {0: 0, 1: 0}),
        (("--to-time", "2100-01-01"), {0: 3, 1: 3}),
    ],
)
def test_reset(headrace: Headrace, group: str, options: tuple[str, ...], expected: dict[int, int]) -> None:
    planned = json.loads(headrace("groups", "reset", group, *options, "--dry-run", "--json").stdout)
    assert {move["partition"]: (move["before"], move["after"]) for move in planned} == {
        partition: (2, after) for partition, after in expected.items()
    }
    assert offsets(headrace, group) == {0: 2, 1: 2}
    done = headrace("groups", "reset", group, *options, "--yes").stdout
    assert "BEFORE" in done
    assert f'of group "{group}"' in done.splitlines()[-1]
    assert offsets(headrace, group) == expected


def test_a_reset_beyond_the_end_says_so(headrace: Headrace, group: str, topic: str) -> None:
    told = headrace("groups", "reset", group, "--to-offset", "99", "--dry-run").stderr.splitlines()
    assert told == [f"{topic}-{partition} has no offset 99: using the nearest, 3" for partition in (0, 1)]


def test_reset_some_partitions_also_of_a_group_that_is_not_there(headrace: Headrace, group: str, topic: str) -> None:
    headrace("groups", "reset", group, "--topic", f"{topic}:1,2", "--to-earliest", "--yes")
    assert offsets(headrace, group) == {0: 2, 1: 0, 2: 0}
    headrace("groups", "reset", f"new-{group}", "--topic", topic, "--to-latest", "--yes")
    assert offsets(headrace, f"new-{group}") == {0: 3, 1: 3, 2: 0}


def test_what_cannot_be_reset(headrace: Headrace, group: str, topic: str) -> None:
    assert "give one of --to-earliest" in headrace("groups", "reset", group, exit_code=2).stderr
    assert (
        "give one of --to-earliest"
        in headrace("groups", "reset", group, "--to-latest", "--shift", "1", exit_code=2).stderr
    )
    assert "not a time" in headrace("groups", "reset", group, "--to-time", "soon", exit_code=2).stderr
    assert "--topic" in headrace("groups", "reset", "fresh", "--to-latest", exit_code=1).stderr
    misspelt = headrace("groups", "reset", f"{group}s", "--to-latest", exit_code=1).stderr
    assert f'has no committed offsets (did you mean "{group}"?): name its topics' in misspelt
    assert (
        "no partition 7"
        in headrace("groups", "reset", group, "--topic", f"{topic}:7", "--to-latest", exit_code=1).stderr
    )
    unknown = headrace("groups", "reset", group, "--topic", "nope", "--to-latest", exit_code=1).stderr
    assert "it does not exist (headrace topics list shows all)" in unknown
    refused = headrace("groups", "reset", group, "--topic", f"{topic}:2", "--shift", "1", exit_code=1)
    assert "no committed offset" in refused.stderr


def test_delete(headrace: Headrace, group: str) -> None:
    assert headrace("groups", "delete", group, "--yes").stdout == f'deleted group "{group}"\n'
    assert "does not exist" in headrace("groups", "describe", group, exit_code=1).stderr
    assert "does not exist (headrace groups list" in headrace("groups", "delete", group, "--yes", exit_code=1).stderr


def test_a_group_of_the_new_protocol(headrace: Headrace, broker: EmbeddedBroker, topic: str) -> None:
    name = f"new-{topic}"
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": name, "group.protocol": "consumer"}
    )
    consumer.subscribe([topic])
    while len(consumer.assignment()) < 3:
        consumer.poll(0.05)
    (described,) = json.loads(headrace("groups", "describe", name, "--json").stdout)
    assert (described["state"], described["protocol"]) == ("Stable", "uniform")
    assert described["members"][0]["partitions"] == [f"{topic}-{partition}" for partition in range(3)]
    listed = json.loads(headrace("groups", "list", "--json").stdout)
    assert {"group": name, "protocol_type": "consumer", "state": "Stable", "type": "consumer"} in listed
    consumer.close()
    headrace("groups", "delete", name, "--yes")


def test_groups_of_one_type_or_state(headrace: Headrace, group: str) -> None:
    def listed(*options: str) -> set[str]:
        return {each["group"] for each in json.loads(headrace("groups", "list", *options, "--json").stdout)}

    assert group in listed("--type", "classic", "--state", "Empty")
    assert group not in listed("--type", "consumer")
    assert group in listed("--state", "empty", "--state", "Stable")
    assert headrace("groups", "list", "--state", "Dead").stdout == "no group matches\n"
    assert "reconciling" in headrace("groups", "list", "--state", "stabel", exit_code=2).stderr.lower()
    assert "classic" in headrace("groups", "list", "--type", "old", exit_code=2).stderr


def test_more_groups_than_a_connection_has_requests_in_flight(broker: EmbeddedBroker, topic: str) -> None:
    names = [f"{topic}-{number}" for number in range(REQUESTS_IN_FLIGHT_MAX + 100)]
    with Admin(broker.bootstrap_servers) as admin:
        for number, name in enumerate(names):
            admin.commit_group_offsets(name, {TopicPartition(topic, 0): number})
        assert list(admin.describe_groups(names)) == names
        assert {outcome.error for outcome in admin.delete_groups(names).values()} == {ErrorCode.NONE}

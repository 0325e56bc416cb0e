"""Everything that the broker serves can be asked by the client, or it is said here why not."""

import ast
from pathlib import Path

import pytest

import headrace.client
from headrace.broker.api.registry import SERVED
from headrace.client import Admin, ConfigResource, NewScramUser, NewTopic, ResourceType, ScramMechanism
from headrace.client.core.admin import topics, users
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BadResponse, BrokerError, InvalidArgument
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    alter_user_scram_credentials,
    describe_topic_partitions,
    describe_user_scram_credentials,
)

from .test_admin_operations import Script, described

pytestmark = pytest.mark.process

NOT_ASKED = {
    ApiKey.ALTER_CONFIGS: "replaces all configs at once; alter_configs asks IncrementalAlterConfigs",
}


def codecs_in_use() -> set[str]:
    """The codec modules that the client's code imports."""
    found: set[str] = set()
    for path in Path(headrace.client.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "headrace.wire.messages":
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headrace.wire.messages."):
                found.add((node.module or "").rsplit(".", 1)[1])
    return found


def test_what_is_served_is_asked() -> None:
    used = codecs_in_use()
    served = {ApiKey(api.key) for api in SERVED}
    missing = {key.name for key in served - NOT_ASKED.keys() if key.name.lower() not in used}
    assert not missing, "give the client what asks this, or say above why it does not"
    assert set(NOT_ASKED) <= served
    assert not {key.name for key in NOT_ASKED if key.name.lower() in used}, "it is asked now"


def test_pages_and_resources() -> None:
    with EmbeddedBroker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("many", partitions=7), NewTopic("few")])
        few, many = admin.topic_partitions(["many", "few", "many"])
        assert (few.name, len(few.partitions), many.name, len(many.partitions)) == ("few", 1, "many", 7)
        assert many == admin.topics(["many"])[0]
        assert admin.topic_partitions(["nowhere"])[0].error
        assert set(admin.config_resources([ResourceType.TOPIC])) == {
            ConfigResource(ResourceType.TOPIC, "many"),
            ConfigResource(ResourceType.TOPIC, "few"),
        }
        everything = admin.config_resources()
        assert {resource.type for resource in everything} >= {ResourceType.TOPIC, ResourceType.BROKER}
        assert admin.scram_users() == {}


def page(topic: str, *partitions: int, after: tuple[str, int] | None = None) -> object:
    described_partitions = tuple(
        describe_topic_partitions.DescribeTopicPartitionsResponsePartition(
            partition_index=index, leader_id=1, eligible_leader_replicas=(4,)
        )
        for index in partitions
    )
    found = describe_topic_partitions.DescribeTopicPartitionsResponseTopic(name=topic, partitions=described_partitions)
    cursor = None
    if after is not None:
        cursor = describe_topic_partitions.DescribeTopicPartitionsResponseNextCursor(
            topic_name=after[0], partition_index=after[1]
        )
    return describe_topic_partitions.DescribeTopicPartitionsResponse(topics=(found,), next_cursor=cursor)


def test_pages_are_put_together() -> None:
    script = Script(page("a", 0, 1, after=("a", 2)), page("a", 2, after=("b", 0)), page("b", 0))
    first, second = script.run(topics.topic_partitions(["b", "a"]))
    assert [each.partition for each in first.partitions] == [0, 1, 2]
    assert [each.eligible for each in second.partitions] == [(4,)]
    cursors = [call.message.cursor for call in script.calls]
    assert [(each.topic_name, each.partition_index) for each in cursors[1:]] == [("a", 2), ("b", 0)]


def test_a_broker_that_goes_round_in_circles_is_left() -> None:
    script = Script(page("a", 0, after=("a", 1)), page("a", 0, after=("a", 1)))
    with pytest.raises(BadResponse, match="the same page of partitions repeatedly"):
        script.run(topics.topic_partitions(["a"]))


def test_users_by_scram() -> None:
    result = alter_user_scram_credentials.AlterUserScramCredentialsResponseResult
    answer = alter_user_scram_credentials.AlterUserScramCredentialsResponse(results=(result(user="alice"),))
    script = Script(described(1), answer)
    new = NewScramUser(name="alice", password="pencil", mechanism=ScramMechanism.SCRAM_SHA_256)
    outcomes = script.run(
        users.alter_scram_users(
            Cluster(), added=[new], deleted=[("bob", ScramMechanism.SCRAM_SHA_512)], random_bytes=bytes
        )
    )
    assert not outcomes["alice"].error
    (upsertion,) = script.calls[-1].message.upsertions
    assert (upsertion.name, upsertion.mechanism, upsertion.iterations, len(upsertion.salt)) == ("alice", 1, 4_096, 16)
    assert len(upsertion.salted_password) == 32
    assert b"pencil" not in upsertion.salted_password
    assert "pencil" not in repr(new)
    (deletion,) = script.calls[-1].message.deletions
    assert (deletion.name, deletion.mechanism) == ("bob", 2)
    for wrong in ({"name": ""}, {"password": ""}, {"iterations": 1}):
        options = {"name": "alice", "password": "pencil", **wrong}
        with pytest.raises(InvalidArgument):
            Script().run(
                users.alter_scram_users(Cluster(), added=[NewScramUser(**options)], deleted=[], random_bytes=bytes)
            )


def test_users_that_cannot_be_described() -> None:
    refused = describe_user_scram_credentials.DescribeUserScramCredentialsResponse(error_code=31)
    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        Script(refused).run(users.scram_users(None))

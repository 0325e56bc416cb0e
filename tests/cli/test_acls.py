"""`headrace acls`: rules are added, listed, checked and removed."""

import json

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def broker():
    configs = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with EmbeddedBroker(config=configs) as broker:
        yield broker


def run(broker, *arguments):
    return CliRunner().invoke(cli, ["acls", *arguments, "--bootstrap", broker.bootstrap_servers])


def test_the_life_of_rules(broker):
    assert "headrace acls add" in run(broker, "list").output
    result = run(broker, "add", "User:alice", "read", "write", "--topic", "orders-", "--prefix")
    assert result.exit_code == 0, result.output
    assert 'allow User:alice read on topic "orders-" and names that begin with it' in result.output
    assert run(broker, "add", "User:*", "all", "--group", "*", "--deny", "--host", "10.0.0.1").exit_code == 0
    found = json.loads(run(broker, "list", "--json").output)
    assert {(each["principal"], each["operation"], each["permission"]) for each in found} == {
        ("User:alice", "read", "allow"), ("User:alice", "write", "allow"), ("User:*", "all", "deny"),
    }  # fmt: skip
    assert len(json.loads(run(broker, "list", "--json", "--principal", "User:alice").output)) == 2
    result = run(broker, "check", "User:alice", "describe", "--topic", "orders-eu")
    assert result.exit_code == 0
    assert result.output.startswith("allowed: by the rule allow User:alice")
    result = run(broker, "check", "User:alice", "read", "--group", "g", "--host", "10.0.0.1")
    assert result.exit_code == 1
    assert result.output.startswith("denied: by the rule deny User:* from 10.0.0.1")
    assert run(broker, "check", "User:bob", "read", "--topic", "orders-eu").output == "denied: no rule allows it\n"
    assert "removed allow User:alice write" in run(broker, "remove", "User:alice", "write", "--topic", "orders-").output
    assert run(broker, "remove", "User:alice", "--topic", "orders-").output.count("removed") == 1
    assert "no rule matches" in run(broker, "remove", "User:alice", "--topic", "orders-").output
    assert run(broker, "remove", "User:*", "--group", "*").exit_code == 0


def test_what_is_wrong(broker):
    for arguments, reason in (
        (("add", "User:a", "read"), "name one resource"),
        (("add", "User:a", "read", "--topic", "t", "--cluster"), "name one resource"),
        (("add", "User:a", "fly", "--topic", "t"), "fly"),
        (("add", "alice", "read", "--topic", "t"), "User:alice"),
        (("add", "User:a", "cluster-action", "--topic", "t"), "does not exist on a topic"),
    ):
        result = run(broker, *arguments)
        assert result.exit_code, arguments
        assert reason in result.output, result.output

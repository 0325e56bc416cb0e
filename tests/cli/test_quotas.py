"""`headrace quotas`: quotas are set, listed and removed."""

import json

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker() as broker:
        yield broker


def run(broker, *arguments):
    return CliRunner().invoke(cli, ["quotas", *arguments, "--bootstrap", broker.bootstrap_servers])


def test_the_life_of_quotas(broker):
    assert "headrace quotas set" in run(broker, "list").output
    result = run(broker, "set", "producer_byte_rate=1000000", "consumer_byte_rate=2e6", "--user", "alice")
    assert result.exit_code == 0, result.output
    assert 'consumer_byte_rate=2000000 for user "alice"' in result.output
    result = run(broker, "set", "producer_byte_rate=5", "--default", "user", "--client-id", "app")
    assert result.output == 'producer_byte_rate=5 for client-id "app" and every other user\n'
    assert run(broker, "set", "connection_creation_rate=9", "--ip", "127.0.0.9").exit_code == 0
    assert json.loads(run(broker, "list", "--json").output) == [
        {"entity": {"client-id": "app", "user": None}, "quotas": {"producer_byte_rate": 5.0}},
        {"entity": {"ip": "127.0.0.9"}, "quotas": {"connection_creation_rate": 9.0}},
        {"entity": {"user": "alice"}, "quotas": {"consumer_byte_rate": 2e6, "producer_byte_rate": 1e6}},
    ]
    assert "(default)" in run(broker, "list").output
    assert len(json.loads(run(broker, "list", "--json", "--user", "alice").output)) == 1
    assert len(json.loads(run(broker, "list", "--json", "--default", "user").output)) == 1
    result = run(broker, "remove", "producer_byte_rate", "--user", "alice")
    assert result.output == 'removed producer_byte_rate of user "alice"\n'
    assert "removed consumer_byte_rate" in run(broker, "remove", "--user", "alice").output
    assert "no quota matches" in run(broker, "remove", "--user", "alice").output


def test_what_is_wrong(broker):
    for arguments, reason in (
        (("set", "producer_byte_rate=1"), "say whose quotas"),
        (("set", "producer_byte_rate", "--user", "a"), "KEY=VALUE"),
        (("set", "speed=1", "--user", "a"), "is no quota"),
        (("set", "producer_byte_rate=fast", "--user", "a"), "is no number"),
        (("set", "producer_byte_rate=0", "--user", "a"), "greater than 0"),
        (("set", "producer_byte_rate=1", "--user", "a", "--default", "user"), "not both"),
        (("set", "producer_byte_rate=1", "--user", "a", "--ip", "10.0.0.1"), "cannot be combined"),
        (("set", "connection_creation_rate=1", "--ip", "here"), "is no IP address"),
        (("remove", "speed", "--user", "a"), "speed"),
    ):
        result = run(broker, *arguments)
        assert result.exit_code, arguments
        assert reason in result.output, result.output

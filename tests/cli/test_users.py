"""`headrace users`: users are added, listed and removed, and passwords are in no argument."""

import json

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def broker():
    configs = {
        "listeners": "LOCAL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "LOCAL:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "connection.failed.authentication.delay.ms": "0",
    }
    with EmbeddedBroker(config=configs) as broker:
        yield broker


def run(broker, *arguments, listener=0, **options):
    address = broker._runner._node.addresses[listener]
    return CliRunner().invoke(cli, ["users", *arguments, "--bootstrap", address], **options)


def listed(broker):
    found = json.loads(run(broker, "list", "--json").output)
    return [(each["user"], each["mechanism"]) for each in found]


def test_the_life_of_a_user(broker, tmp_path):
    file = tmp_path / "password"
    file.write_text("pencil\nnot this line\n")
    assert run(broker, "add", "alice", "--password-file", str(file)).exit_code == 0
    assert run(broker, "add", "bob", "--mechanism", "SCRAM-SHA-512", input="one\none\n").exit_code == 0
    assert listed(broker) == [
        ("alice", "SCRAM-SHA-256"), ("alice", "SCRAM-SHA-512"), ("bob", "SCRAM-SHA-512"),
    ]  # fmt: skip
    properties = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256", "sasl.username=alice")
    file.write_text("pencil\n")
    options = [word for text in (*properties, f"sasl.password=@{file}") for word in ("-X", text)]
    result = run(broker, "list", *options, listener=1)
    assert result.exit_code == 0, result.output
    assert "alice" in result.output
    assert run(broker, "remove", "alice", "--mechanism", "SCRAM-SHA-512").exit_code == 0
    assert run(broker, "remove", "bob").exit_code == 0
    assert listed(broker) == [("alice", "SCRAM-SHA-256")]
    assert run(broker, "remove", "alice").exit_code == 0
    assert "headrace users add" in run(broker, "list").output


def test_what_is_wrong(broker, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for arguments, reason in (
        (("add", "alice", "--password-file", str(empty)), "write the password there"),
        (("remove", "stranger"), "no SCRAM credentials"),
        (("list", "-X", "security.protocol=TLS"), "security_protocol"),
        (("list", "-X", "sasl.password=@/nowhere"), "cannot read"),
        (("list", "-X", "sasl.password"), "name=value"),
    ):
        result = run(broker, *arguments)
        assert result.exit_code, arguments
        assert reason in result.output + str(result.exception), result.output

"""Profiles and -X: every command reaches a secured cluster, secrets stay out of sight, and the order of precedence."""

import json
import stat

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.client import Admin, NewScramUser, ScramMechanism
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def broker():
    configs = {
        "listeners": "LOCAL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "LOCAL:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "connection.failed.authentication.delay.ms": "0",
    }
    with EmbeddedBroker(config=configs) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.alter_scram_users(
                [NewScramUser(name="alice", password=PASSWORD, mechanism=ScramMechanism.SCRAM_SHA_256)]
            )
        yield broker


@pytest.fixture
def secured(broker):
    """Return the address of the listener with SASL."""
    return broker._runner._node.addresses[1]


@pytest.fixture
def headrace(tmp_path):
    def call(*arguments, environment=None, **options):
        variables = {"HEADRACE_PROFILE_FILE": str(tmp_path / "profiles.toml"), "HEADRACE_BOOTSTRAP": None}
        return CliRunner().invoke(cli, arguments, env={**variables, **(environment or {})}, **options)

    return call


def add(headrace, name, address, *, password=PASSWORD):
    properties = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256", "sasl.username=alice")
    options = [word for text in properties for word in ("-X", text)]
    return headrace("profile", "add", name, "--bootstrap", address, *options, input=f"{password}\n")


def test_every_command_uses_the_profile(headrace, secured, tmp_path):
    assert add(headrace, "prod", secured).exit_code == 0
    for arguments in (
        ("topics", "create", "orders"), ("topics", "list"), ("topics", "describe", "orders"), ("groups", "list"),
        ("configs", "describe", "--topic", "orders"), ("cluster", "status"), ("cluster", "brokers"), ("users", "list"),
        ("cluster", "features", "list"), ("cluster", "quorum"), ("transactions", "list"), ("top", "--once"),
        ("configs", "alter", "--topic", "orders", "--set", "retention.ms=60000"),
    ):  # fmt: skip
        result = headrace(*arguments, "--profile", "prod")
        assert result.exit_code == 0, (arguments, result.output, result.exception)
    assert headrace("produce", "orders", "--profile", "prod", "-X", "linger.ms=1", input="apples\n").exit_code == 0
    read = headrace("consume", "orders", "--from-beginning", "--profile", "prod", "-X", "check.crcs=false")
    assert read.stdout == "apples\n", read.output
    grouped = headrace("consume", "orders", "--from-beginning", "--group", "g", "--max", "1", "--profile", "prod")
    assert grouped.stdout == "apples\n", grouped.output
    diagnosis = json.loads(headrace("doctor", "--profile", "prod", "--data-dir", str(tmp_path), "--json").output)
    assert [each["level"] for each in diagnosis if each["about"] == "broker"] == ["ok"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("status",), "no pipeline has run with this broker yet"),
        (("lag", "orders-to-table"), "has not completed a batch yet"),
        (("stop", "orders-to-table"), "is not running"),
    ],
)
def test_pipelines_are_monitored_through_the_profile(headrace, secured, command, said):
    add(headrace, "prod", secured)
    for arguments in (("--profile", "prod"), ()):  # it is in use as well
        assert said in headrace("pipeline", *command, *arguments).output


def test_secrets_are_in_no_output_and_the_file_is_private(headrace, secured, tmp_path):
    added = add(headrace, "prod", secured)
    file = tmp_path / "profiles.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    outputs = [added.output, headrace("profile", "list").output, headrace("profile", "list", "--json").output]
    assert not [output for output in outputs if PASSWORD in output]
    (listed,) = json.loads(outputs[2])
    assert listed["in_use"]
    assert listed["properties"]["sasl.password"] == "(hidden)"
    file.chmod(0o644)
    assert "chmod 600" in headrace("topics", "list").output


def test_a_password_may_stay_in_a_file_of_its_own(headrace, secured, tmp_path):
    (tmp_path / "alice.password").write_text(f"{PASSWORD}\n")
    arguments = [
        *("-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=SCRAM-SHA-256", "-X", "sasl.username=alice"),
        *("-X", f"sasl.password=@{tmp_path / 'alice.password'}"),
    ]
    direct = headrace("topics", "list", "--bootstrap", secured, *arguments)
    assert direct.exit_code == 0, direct.output
    assert headrace("profile", "add", "prod", "--bootstrap", secured, *arguments).exit_code == 0
    assert PASSWORD not in (tmp_path / "profiles.toml").read_text()
    assert headrace("topics", "list").exit_code == 0
    shown = headrace("topics", "list", "--bootstrap", secured, *arguments[:-1], f"sasl.password={PASSWORD}")
    assert "list of processes" in shown.output
    assert PASSWORD not in shown.output


def test_the_first_level_that_names_a_cluster_decides(headrace, broker, secured, tmp_path):
    """A password never goes to an address that its profile does not name."""
    add(headrace, "prod", secured)
    assert headrace("profile", "add", "nowhere", "--bootstrap", "127.0.0.1:1").exit_code == 0
    plain = broker.bootstrap_servers
    quick = ("-X", "request.timeout.ms=1000")
    for arguments, environment, works in (
        ((), {}, True),  # the first profile is in use
        ((), {"HEADRACE_PROFILE": "nowhere"}, False),
        (("--profile", "prod"), {"HEADRACE_PROFILE": "nowhere", "HEADRACE_BOOTSTRAP": "127.0.0.1:1"}, True),
        (("--bootstrap", plain), {"HEADRACE_PROFILE": "nowhere"}, True),  # and not SASL, which this listener refuses
        (("--bootstrap", plain, "--profile", "prod"), {}, False),
        ((), {"HEADRACE_BOOTSTRAP": plain}, True),
        (("--profile", "prod", "-X", "sasl.password=@/dev/null"), {}, False),
    ):
        result = headrace("topics", "list", *arguments, *quick, environment=environment)
        assert (result.exit_code == 0) is works, (arguments, environment, result.output)
    assert headrace("profile", "use", "nowhere").exit_code == 0
    assert headrace("topics", "list", *quick).exit_code == 1
    assert headrace("profile", "remove", "nowhere").exit_code == 0
    assert [each["in_use"] for each in json.loads(headrace("profile", "list", "--json").output)] == [False]


def test_errors_say_what_to_do(headrace, tmp_path):
    headrace("profile", "add", "production", "--bootstrap", "127.0.0.1:1")
    for arguments, advice in (
        (("topics", "list", "--profile", "produktion"), 'did you mean "production"?'),
        (("profile", "use", "produktion"), "headrace profile list"),
        (("profile", "use"), "--none"),
        (("profile", "add", "a b", "--bootstrap", "h:1"), "letters, digits"),
        (("profile", "add", "x", "--bootstrap", "h:1", "-X", "sasl.user=alice"), "sasl.username"),
        (("profile", "add", "x", "--bootstrap", "h:1", "-X", "sasl.username=alice"), "security_protocol"),
        (("profile", "add", "x", "--bootstrap", "h:1", "-X", "bootstrap.servers=h:1"), "--bootstrap"),
    ):
        result = headrace(*arguments)
        assert result.exit_code, arguments
        assert advice in result.output, result.output
    file = tmp_path / "profiles.toml"
    for text in ("[profiles", "profiles = 3", '[profiles.a]\n"x" = 3', "other = 1"):
        file.write_text(text)
        assert str(file) in headrace("topics", "list").output

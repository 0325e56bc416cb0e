"""A manager of a cluster with SASL and an authorizer: it logs in, and keeps the cluster's users and rules."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.client import Admin, NewScramUser, Producer, ScramMechanism
from headrace.client.errors import AuthenticationFailed, BrokerError
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess

pytestmark = pytest.mark.process

PASSWORD = "the password of the manager"
CONFIGS = {
    "listeners": "LOCAL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "listener.security.protocol.map": "LOCAL:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "connection.failed.authentication.delay.ms": "0",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:manager",
    "auto.create.topics.enable": "false",
}
RULE = {"principal": "User:ada", "operation": "write", "resource": "topic", "name": "orders-", "pattern": "prefixed"}
WHOLE_RULE = {**RULE, "host": "*", "permission": "allow"}


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    """The address of a listener that lets in only users."""
    with EmbeddedBroker(config=CONFIGS) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            user = NewScramUser(name="manager", password=PASSWORD, mechanism=ScramMechanism.SCRAM_SHA_512)
            for outcome in admin.alter_scram_users([user]).values():
                outcome.check("the user cannot be added")
        yield broker._runner._node.addresses[1]  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def manager(secured: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagerProcess]:
    with ManagerProcess(secured, *options(tmp_path_factory.mktemp("secret") / "password")) as running:
        yield running


def options(file: Path, password: str = PASSWORD) -> list[str]:
    file.write_text(password + "\n")
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "manager",
        "sasl.password": f"@{file}",
    }
    return [word for name, value in properties.items() for word in ("-X", f"{name}={value}")]


def test_every_client_of_the_manager_logs_in(manager: ManagerProcess) -> None:
    """Administration, producers with and without keys, readers and streams have clients of their own."""
    manager.call("POST", "/v1/topics", json={"name": "logged-in"}, status=201)
    path = "/v1/topics/logged-in/records"
    manager.call("POST", path, json={"value": 1})
    manager.call("POST", path, json={"value": 2}, headers={"idempotency-key": "second"})
    read = manager.call("GET", path, params={"as": "json"})
    assert [record["value"] for record in read["records"]] == [1, 2]
    for streamed in ("/v1/events", "/v1/topics/logged-in/stream"):
        with manager.http.stream("GET", streamed) as response:
            assert response.status_code == 200
    names = {(each["client_id"], each["principal"]) for each in manager.call("GET", "/v1/connections")}
    assert ("headrace-manager", "User:manager") in names
    assert manager.call("GET", "/v1/cluster")["health"] == "green"


def test_a_password_that_is_wrong_says_so(secured: str, tmp_path: Path) -> None:
    with ManagerProcess(secured, *options(tmp_path / "password", "another")) as refused:
        refused.call("GET", "/healthz")
        assert "authenticat" in refused.call("GET", "/readyz", status=503)["detail"].lower()
        assert PASSWORD not in refused.log()


def test_users_of_the_cluster_are_added_changed_and_removed(manager: ManagerProcess, secured: str) -> None:
    both = manager.call("PUT", "/v1/users/ada", json={"password": "first"})
    assert [each["mechanism"] for each in both["credentials"]] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert log_in(secured, "ada", "first")
    manager.call("PUT", "/v1/users/ada", json={"password": "second", "iterations": 8_192})
    assert not log_in(secured, "ada", "first")
    assert log_in(secured, "ada", "second")
    (listed,) = [each for each in manager.call("GET", "/v1/users") if each["name"] == "ada"]
    assert [each["iterations"] for each in listed["credentials"]] == [8_192, 8_192]
    records = manager.call("GET", "/v1/audit")
    assert "PUT /v1/users/{user}" in {each["action"] for each in records}
    assert "second" not in str(records)
    manager.call("DELETE", "/v1/users/ada", status=204)
    assert not log_in(secured, "ada", "second")
    manager.call("DELETE", "/v1/users/ada", status=404)


def log_in(address: str, user: str, password: str) -> bool:
    try:
        with Admin(
            address, security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-256", sasl_username=user,
            sasl_password=password,
        ) as admin:  # fmt: skip
            admin.cluster()
    except AuthenticationFailed:
        return False
    return True


def test_rules_of_the_cluster_are_added_decide_and_are_removed(manager: ManagerProcess, secured: str) -> None:
    manager.call("POST", "/v1/topics", json={"name": "orders-eu"}, status=201)
    manager.call("PUT", "/v1/users/ada", json={"password": "a password"})
    assert not may_write(secured)
    assert manager.call("POST", "/v1/acls", json={"rules": [RULE]}, status=201) == [WHOLE_RULE]
    assert may_write(secured)
    question = {"principal": "User:ada", "operation": "write", "resource": "topic", "name": "orders-eu"}
    assert manager.call("GET", "/v1/acls/decision", params=question) == {"allowed": True, "rule": WHOLE_RULE}
    denied = manager.call("GET", "/v1/acls/decision", params={**question, "operation": "read"})
    assert denied == {"allowed": False, "rule": None}
    matching = {"resource": "topic", "name": "orders-eu", "pattern": "match"}
    assert manager.call("GET", "/v1/acls", params=matching) == [WHOLE_RULE]
    assert manager.call("GET", "/v1/acls", params={"principal": "User:eve"}) == []
    assert manager.call("DELETE", "/v1/acls", params={"principal": "User:ada", "dry_run": "true"}) == [WHOLE_RULE]
    assert may_write(secured)
    assert manager.call("DELETE", "/v1/acls", params={"principal": "User:ada"}) == [WHOLE_RULE]
    assert not may_write(secured)
    assert manager.call("GET", "/v1/acls") == []
    wrong = {"rules": [{**RULE, "resource": "cluster", "name": "kafka-cluster"}]}
    assert "does not exist on a cluster" in manager.call("POST", "/v1/acls", json=wrong, status=400)["detail"]


def may_write(address: str) -> bool:
    with Producer(
        address, security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", sasl_username="ada",
        sasl_password="a password",
    ) as producer:  # fmt: skip
        try:
            producer.send("orders-eu", b"1").result()
        except BrokerError:
            return False
        return True


@pytest.mark.parametrize(
    ("property", "reason"),
    [
        ("security.protocl=SSL", "did you mean"),
        ("client.id=other", "the manager chooses this setting itself"),
        ("sasl.username=ada", "SASL"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_at_the_start(property: str, reason: str) -> None:
    refused = CliRunner().invoke(cli, ["manager", "--bootstrap", "127.0.0.1:1", "-X", property])
    assert (refused.exit_code, reason in refused.output) == (1, True), refused.output

"""kafka-acls adds, lists and removes rules, kafka-configs adds, lists and removes users: both with a login."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.environments import jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION
from headrace import Admin
from headrace.core.access.acls import AccessRule, PatternType, Permission, RuleFilter
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.testing import EmbeddedBroker

ACLS = "org.apache.kafka.tools.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
TOOL_S_MAX = 120
PASSWORD = "admin-secret"
MODULES = "org.apache.kafka.common.security"
EVERY_RULE = RuleFilter(AclResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)
ALLOW, DENY = Permission.ALLOW, Permission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC, GROUP, CLUSTER, ID = (
    AclResourceType.TOPIC,
    AclResourceType.GROUP,
    AclResourceType.CLUSTER,
    AclResourceType.TRANSACTIONAL_ID,
)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    configs = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "sasl.jaas.config": f'{MODULES}.plain.PlainLoginModule required user_admin="{PASSWORD}";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with EmbeddedBroker(process=True, config=configs) as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(broker: EmbeddedBroker) -> Iterator[Admin]:
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    with Admin(broker.bootstrap_servers, sasl_username="admin", sasl_password=PASSWORD, **login) as admin:
        yield admin


@pytest.fixture(scope="module")
def tool(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs a command as this user, and returns what it prints; a failure has an empty text."""
    folder = tmp_path_factory.mktemp("clients")
    classpath = f"{jars_from_maven(f'kafka-{KAFKA_VERSION}', ARTIFACTS)}/*"

    def run(name: str, *arguments: str, user: str = "admin", password: str = PASSWORD, mechanism: str = "PLAIN") -> str:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        settings = Path(folder) / f"{user}.properties"
        settings.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f'sasl.jaas.config={MODULES}.{module} required username="{user}" password="{password}";\n'
        )
        command = ["java", "-Xmx256M", "-cp", classpath, name, "--bootstrap-server", broker.bootstrap_servers]
        command += ["--command-config", str(settings), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S_MAX, check=False)
        return done.stdout + done.stderr

    return run


def rule(
    kind: AclResourceType,
    name: str,
    operation: Operation,
    *,
    principal: str = "User:bob",
    pattern: PatternType = LITERAL,
    permission: Permission = ALLOW,
    host: str = "*",
) -> AccessRule:
    return AccessRule(kind, name, pattern, principal, host, operation, permission)


def test_kafka_acls_adds_lists_and_removes_rules(tool: Any, admin: Admin) -> None:
    before = set(admin.access_rules(EVERY_RULE))
    tool(ACLS, "--add", "--allow-principal", "User:bob", "--producer", "--topic", "orders", "--transactional-id", "tx")
    tool(ACLS, "--add", "--allow-principal", "User:bob", "--consumer", "--topic", "in-", "--group", "g-",
         "--resource-pattern-type", "prefixed")  # fmt: skip
    tool(ACLS, "--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.1", "--operation", "All", "--topic", "*")
    tool(ACLS, "--add", "--allow-principal", "User:ops", "--operation", "Alter", "--cluster")
    expected = {
        *(rule(TOPIC, "orders", each) for each in (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE)),
        *(rule(ID, "tx", each) for each in (Operation.WRITE, Operation.DESCRIBE)),
        *(rule(TOPIC, "in-", each, pattern=PREFIXED) for each in (Operation.READ, Operation.DESCRIBE)),
        rule(GROUP, "g-", Operation.READ, pattern=PREFIXED),
        rule(TOPIC, "*", Operation.ALL, principal="User:eve", permission=DENY, host="10.0.0.1"),
        rule(CLUSTER, CLUSTER_NAME, Operation.ALTER, principal="User:ops"),
    }
    assert set(admin.access_rules(EVERY_RULE)) == expected | before

    listed = tool(ACLS, "--list", "--topic", "in-eu", "--resource-pattern-type", "match")
    assert "name=in-, patternType=PREFIXED" in listed
    assert "principal=User:eve, host=10.0.0.1, operation=ALL, permissionType=DENY" in listed
    assert "orders" not in listed

    tool(ACLS, "--remove", "--force", "--topic", "orders")
    tool(ACLS, "--remove", "--force", "--deny-principal", "User:eve", "--deny-host", "10.0.0.1", "--operation", "All",
         "--topic", "*")  # fmt: skip
    kept = {each for each in expected if each.resource_name not in ("orders", "*")}
    assert set(admin.access_rules(EVERY_RULE)) == kept | before


def test_kafka_configs_adds_lists_and_removes_users(tool: Any, admin: Admin) -> None:
    user = ("--entity-type", "users", "--entity-name", "carol")
    tool(CONFIGS, "--alter", *user, "--add-config",
         "SCRAM-SHA-256=[iterations=8192,password=carol-secret],SCRAM-SHA-512=[password=carol-secret]")  # fmt: skip
    described = tool(CONFIGS, "--describe", *user)
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "SCRAM-SHA-512=iterations=4096" in described
    assert "secret" not in described

    # The user gets in, and may do nothing yet.
    login = {"user": "carol", "password": "carol-secret", "mechanism": "SCRAM-SHA-512"}
    assert "ClusterAuthorizationException" in tool(ACLS, "--list", **login)
    tool(ACLS, "--add", "--allow-principal", "User:carol", "--operation", "Describe", "--cluster")
    assert "principal=User:carol" in tool(ACLS, "--list", "--cluster", **login)
    assert "SaslAuthenticationException" in tool(ACLS, "--list", **{**login, "password": "wrong"})

    tool(CONFIGS, "--alter", *user, "--delete-config", "SCRAM-SHA-512")
    assert [each.mechanism.label for each in admin.scram_users(["carol"])["carol"]] == ["SCRAM-SHA-256"]
    assert "SaslAuthenticationException" in tool(ACLS, "--list", **login)

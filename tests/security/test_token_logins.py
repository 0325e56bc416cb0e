"""Delegation tokens at a broker: creation, logins as their owners, and the limits of what a token may do."""

import asyncio
import json
import time
from base64 import b64encode
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

import headrace.aio
from headrace.cli.main import cli
from headrace.client import Admin, NewTopic
from headrace.client.errors import AuthenticationFailed, BrokerError, InvalidArgument
from headrace.core.access.acls import AccessRule, PatternType, Permission
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedBroker

from .stock import WAIT_MS, WAIT_S, own_settings

pytestmark = pytest.mark.process

NAMES = ("admin", "alice", "manager", "mallory", "seer")
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required " + " ".join(
    f'user_{name}="pw-{name}"' for name in NAMES
)
CONFIGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,LOCAL://127.0.0.1:0",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,LOCAL:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "sasl.jaas.config": f"{JAAS};",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "delegation.token.secret.key": "the secret of the cluster",
    "delegation.token.expiry.check.interval.ms": "50",
    "connection.failed.authentication.delay.ms": "10",
}


class Cluster:
    def __init__(self, broker):
        self.address, self.local = broker._runner._node.addresses


@pytest.fixture(scope="module")
def cluster():
    with EmbeddedBroker(config=CONFIGS) as broker:
        found = Cluster(broker)
        with admin_of(found) as admin:
            user, token = AclResourceType.USER, Operation.CREATE_TOKENS
            rules = [
                AccessRule(user, "User:alice", PatternType.LITERAL, "User:manager", "*", token, Permission.ALLOW),
                *(
                    AccessRule(kind, "*", PatternType.LITERAL, "User:alice", "*", Operation.ALL, Permission.ALLOW)
                    for kind in (AclResourceType.TOPIC, AclResourceType.GROUP)
                ),
            ]
            assert not any(outcome.error for outcome in admin.create_access_rules(rules).values())
        yield found


def admin_of(cluster, name="admin"):
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": f"pw-{name}",
    }
    return Admin(cluster.address, **own_settings(settings), timeout_ms=WAIT_MS)


def token_settings(token, mechanism="SCRAM-SHA-512", password=None):
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": token.token_id,
        "sasl_password": password or token.password,
        "sasl_tokenauth": True,
    }


@contextmanager
def refused(code):
    with pytest.raises(BrokerError) as caught:
        yield
    assert caught.value.code == code


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_with_a_token_has_the_rights_of_its_owner(cluster, mechanism):
    with admin_of(cluster, "alice") as admin:
        token = admin.create_delegation_token(lifetime_ms=3_600_000)
    assert (token.owner, token.requester) == ("User:alice", "User:alice")
    assert 0 < token.max_ms - token.issued_ms <= 3_600_000
    with Admin(cluster.address, **token_settings(token, mechanism), timeout_ms=WAIT_MS) as admin:
        found = admin.create_topics([NewTopic(f"of-a-token-{mechanism.lower()}")])
        assert not any(outcome.error for outcome in found.values())


def test_a_token_for_another_user(cluster):
    with admin_of(cluster, "manager") as admin:
        token = admin.create_delegation_token("User:alice", renewers=["User:mallory"])
        assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:manager", ("User:mallory",))
        with refused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED):
            admin.create_delegation_token("User:mallory")
    with Admin(cluster.address, **token_settings(token), timeout_ms=WAIT_MS) as admin:
        assert not any(outcome.error for outcome in admin.create_topics([NewTopic("of-another")]).values())
    with admin_of(cluster, "mallory") as admin:
        assert admin.renew_delegation_token(token.proof, period_ms=60_000) < token.expires_ms


def test_a_client_that_may_describe_tokens_sees_those_of_others(cluster):
    with admin_of(cluster, "alice") as alice, admin_of(cluster, "seer") as seer, admin_of(cluster) as admin:
        one, two = alice.create_delegation_token(), alice.create_delegation_token()
        assert seer.delegation_tokens() == ()
        for kind, name, operation, expected in (
            (AclResourceType.DELEGATION_TOKEN, one.token_id, Operation.DESCRIBE, {one.token_id}),
            (AclResourceType.USER, "User:alice", Operation.DESCRIBE_TOKENS, {one.token_id, two.token_id}),
        ):
            rule = AccessRule(kind, name, PatternType.LITERAL, "User:seer", "*", operation, Permission.ALLOW)
            assert not any(outcome.error for outcome in admin.create_access_rules([rule]).values())
            assert {one.token_id, two.token_id} & {each.token_id for each in seer.delegation_tokens()} == expected
        assert two.token_id in {each.token_id for each in seer.delegation_tokens(["User:alice"])}


def test_a_token_makes_no_token(cluster):
    with admin_of(cluster, "alice") as admin:
        token = admin.create_delegation_token()
    with Admin(cluster.address, **token_settings(token), timeout_ms=WAIT_MS) as admin:
        for attempt in (
            admin.create_delegation_token,
            admin.delegation_tokens,
            lambda: admin.renew_delegation_token(token.proof),
            lambda: admin.expire_delegation_token(token.proof),
        ):
            with refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
                attempt()


def test_a_client_without_a_name_gets_no_token(cluster):
    with Admin(cluster.local, timeout_ms=WAIT_MS) as admin:
        with refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
            admin.create_delegation_token()
        with refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
            admin.delegation_tokens()


def test_strangers_neither_see_nor_change_a_token(cluster):
    with admin_of(cluster, "alice") as admin:
        token = admin.create_delegation_token()
        assert token in admin.delegation_tokens()
        assert token in admin.delegation_tokens(["User:alice"])
        assert admin.delegation_tokens(["User:another", "User:admin"]) == ()
        assert admin.delegation_tokens([]) == ()
    with admin_of(cluster, "mallory") as admin:
        assert token.token_id not in {each.token_id for each in admin.delegation_tokens()}
        for attempt in (admin.renew_delegation_token, admin.expire_delegation_token):
            with refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
                attempt(token.proof)
            with refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
                attempt(b"\0" * 64)
    with admin_of(cluster) as admin:
        assert token in admin.delegation_tokens(), "a super user sees every token"


def test_a_wrong_proof_is_refused(cluster):
    with admin_of(cluster, "alice") as admin:
        token = admin.create_delegation_token()
    for settings in (
        token_settings(token, password=b64encode(b"\0" * 64).decode()),
        {**token_settings(token), "sasl_username": "0" * 32},
        {**token_settings(token), "sasl_tokenauth": False},
    ):
        with Admin(cluster.address, **settings, timeout_ms=WAIT_MS) as admin:
            with pytest.raises(AuthenticationFailed, match="invalid credentials"):
                admin.cluster()


def test_an_expired_token_is_refused_and_removed(cluster):
    with admin_of(cluster, "alice") as admin:
        token = admin.create_delegation_token()
        gone = admin.create_delegation_token()
        admin.expire_delegation_token(gone.proof)
        assert admin.expire_delegation_token(token.proof, period_ms=0) <= token.expires_ms
        for each in (token, gone):
            with Admin(cluster.address, **token_settings(each), timeout_ms=WAIT_MS) as late:
                with pytest.raises(AuthenticationFailed, match="invalid credentials"):
                    late.cluster()
        deadline = time.monotonic() + WAIT_S
        while token.token_id in {each.token_id for each in admin.delegation_tokens()}:
            assert time.monotonic() < deadline, "expired tokens are not removed"
            time.sleep(0.02)


def test_the_client_of_asyncio(cluster):
    async def run():
        settings = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_username": "alice",
            "sasl_password": "pw-alice",
        }
        async with headrace.aio.Admin(cluster.address, **settings, timeout_ms=WAIT_MS) as admin:
            token = await admin.create_delegation_token()
            assert token in await admin.delegation_tokens()
            async with headrace.aio.Admin(cluster.address, **token_settings(token), timeout_ms=WAIT_MS) as by_token:
                assert (await by_token.cluster()).cluster_id
            assert await admin.renew_delegation_token(token.proof, period_ms=1_000)
            assert await admin.expire_delegation_token(token.proof)
            assert token.token_id not in {each.token_id for each in await admin.delegation_tokens()}

    asyncio.run(run())


def test_a_token_does_not_show_its_proof(cluster):
    with admin_of(cluster, "alice") as admin:
        token = admin.create_delegation_token()
        assert token.proof.hex() not in repr(token)
        assert token.password not in repr(token)
    with pytest.raises(InvalidArgument, match="by SCRAM"):
        Admin(cluster.address, **token_settings(token, "PLAIN"))


def test_tokens_survive_a_restart_and_need_the_same_secret(tmp_path):
    def run(secret):
        return EmbeddedBroker(data_dir=str(tmp_path), config={**CONFIGS, "delegation.token.secret.key": secret})

    with run("one") as broker, admin_of(Cluster(broker)) as admin:
        token = admin.create_delegation_token()
    with run("one") as broker, Admin(Cluster(broker).address, **token_settings(token), timeout_ms=WAIT_MS) as admin:
        assert admin.cluster().cluster_id
    with run("two") as broker, Admin(Cluster(broker).address, **token_settings(token), timeout_ms=WAIT_MS) as admin:
        with pytest.raises(AuthenticationFailed):
            admin.cluster()


def test_without_a_secret_there_are_no_tokens():
    configs = {name: text for name, text in CONFIGS.items() if name != "delegation.token.secret.key"}
    with EmbeddedBroker(config=configs) as broker, admin_of(Cluster(broker)) as admin:
        for attempt in (admin.create_delegation_token, admin.delegation_tokens):
            with refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED):
                attempt()


# The command


def test_the_commands(cluster, tmp_path):
    secret = tmp_path / "alice.password"
    secret.write_text("pw-alice\n")
    properties = (
        "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=alice", f"sasl.password=@{secret}",
    )  # fmt: skip

    def run(*arguments, settings=properties, group="tokens"):
        options = [word for text in settings for word in ("-X", text)]
        return CliRunner().invoke(cli, [group, *arguments, "--bootstrap", cluster.address, *options])

    password = tmp_path / "token.password"
    made = run("create", "--renewer", "User:mallory", "--hours", "2", "--password-file", str(password), "--json")
    assert made.exit_code == 0, made.output
    found = json.loads(made.output)
    assert (found["owner"], found["renewers"]) == ("User:alice", ["User:mallory"])
    assert "password" not in found
    assert password.stat().st_mode & 0o077 == 0
    by_token = (
        "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256", f"sasl.username={found['token']}",
        f"sasl.password=@{password}", "sasl.tokenauth=true",
    )  # fmt: skip
    assert run("list", settings=by_token, group="topics").exit_code == 0
    assert "expires at" in run("renew", found["token"], "--hours", "1").output
    listed = run("list", "--owner", "User:alice", "--json")
    assert found["token"] in {each["token"] for each in json.loads(listed.output)}
    assert password.read_text().strip() not in listed.output
    assert "removed" in run("expire", found["token"]).output
    gone = run("renew", found["token"])
    assert gone.exit_code == 1
    assert "headrace tokens list" in gone.output
    assert run("create", "--owner", "alice").exit_code != 0
    again = run("create", "--password-file", str(password))
    assert again.exit_code == 1, "a file is not written over"
    assert "User:alice" in run("list").output
    printed = run("create")
    assert "password: " in printed.output

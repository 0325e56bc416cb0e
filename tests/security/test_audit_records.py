"""The audit log of a secured broker: logins, refusals and changes with their principals, and no secrets."""

import json
import time

import pytest

from headrace.client import Admin, NewScramUser, NewTopic, Producer, ScramMechanism
from headrace.client.errors import AuthenticationFailed, BrokerError, ClientError
from headrace.core.access.acls import AccessRule, PatternType, Permission
from headrace.model.access import AclResourceType, Operation
from headrace.testing import EmbeddedBroker

from .certificates import Authority
from .token_issuer import AUDIENCE, TokenIssuer

pytestmark = pytest.mark.process

PASSWORDS = {"admin": "correct-horse", "eve": "battery-staple"}
SHA = ScramMechanism.SCRAM_SHA_256
SOON_S = 60


class Audited:
    def __init__(self, broker, folder, authority, issuer):
        self.authority = authority
        self.issuer = issuer
        self.folder = folder
        self.sasl, self.tls = broker._runner._node.addresses

    def settings(self, user, password=None):
        return {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN" if user == "admin" else "SCRAM-SHA-256",
            "sasl_username": user,
            "sasl_password": password or PASSWORDS[user],
        }

    def lines(self):
        file = self.folder / "audit-1.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def await_lines(self, count=1, **wanted):
        """Return the lines with these fields once they tell of as many events."""
        deadline = time.monotonic() + SOON_S
        while True:
            found = [line for line in self.lines() if wanted.items() <= line.items()]
            if sum(line["count"] for line in found) >= count:
                return found
            assert time.monotonic() < deadline, (wanted, self.lines())
            time.sleep(0.02)


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("ca"))
    folder = tmp_path_factory.mktemp("audit")
    issuer = TokenIssuer()
    keys = folder / "keys.json"
    keys.write_bytes(issuer.document())
    configs = {
        **authority.configs(),
        "ssl.client.auth": "required",
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "delegation.token.secret.key": "unguessable",
        "sasl.jaas.config": f'PlainLoginModule required user_admin="{PASSWORDS["admin"]}";',
        "connection.failed.authentication.delay.ms": "0",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "headrace.audit.dir": str(folder),
        "headrace.audit.window.ms": "200",
    }
    with EmbeddedBroker(config=configs) as broker:
        found = Audited(broker, folder, authority, issuer)
        with Admin(found.sasl, **found.settings("admin")) as admin:
            admin.alter_scram_users([NewScramUser(name="eve", password=PASSWORDS["eve"], mechanism=SHA)])
            admin.create_topics([NewTopic("orders")])
        yield found


def test_changes_of_users_and_rules(audited):
    (line,) = audited.await_lines(action="alter_user_scram_credentials")
    assert (line["principal"], line["resources"]) == ("User:admin", ["set eve scram-sha-256"])
    rule = AccessRule(AclResourceType.TOPIC, "t", PatternType.LITERAL, "User:x", "*", Operation.READ, Permission.DENY)
    with Admin(audited.sasl, **audited.settings("admin"), client_id="the-admin") as admin:
        admin.create_access_rules([rule])
    (line,) = audited.await_lines(action="create_acls", client_id="the-admin")
    assert line["resources"] == ['deny User:x read on topic "t"']
    assert (line["client_id"], line["address"], line["listener"]) == ("the-admin", "127.0.0.1", "SASL_PLAINTEXT")
    with Admin(audited.sasl, **audited.settings("eve")) as admin:
        admin.create_access_rules([rule])
    (line,) = audited.await_lines(action="create_acls", principal="User:eve")
    assert (line["outcome"], line["errors"]) == ("refused", ["CLUSTER_AUTHORIZATION_FAILED"])


def test_logins(audited):
    audited.await_lines(kind="login", action="PLAIN", outcome="done", principal="User:admin")
    for user in ("eve", "stranger"):
        for _ in range(3):
            with pytest.raises(AuthenticationFailed), Admin(audited.sasl, **audited.settings(user, "wrong")) as admin:
                admin.topics()
        found = audited.await_lines(3, kind="login", outcome="refused", principal=f"User:{user}")
        assert len(found) < 3 or found[0]["errors"] == ["SASL_AUTHENTICATION_FAILED"]


def test_logins_with_tokens_of_an_identity_provider(audited):
    def log_in(token):
        settings = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
        with Admin(audited.sasl, **settings, sasl_oauth_token=lambda: token) as admin:
            return admin.cluster()

    assert log_in(audited.issuer.token("zoe")).cluster_id
    (line, *_) = audited.await_lines(kind="login", action="OAUTHBEARER", outcome="done")
    assert line["principal"] == "User:zoe"
    with pytest.raises(AuthenticationFailed):
        log_in(audited.issuer.token("zoe", aud="elsewhere"))
    (line, *_) = audited.await_lines(kind="login", action="OAUTHBEARER", outcome="refused")
    assert (line["errors"], line["principal"]) == (["SASL_AUTHENTICATION_FAILED"], "User:")
    admitted = audited.await_lines(kind="login", action="OAUTHBEARER", outcome="done")
    assert {line["principal"] for line in admitted} == {"User:zoe"}


def test_delegation_tokens(audited):
    with Admin(audited.sasl, **audited.settings("admin")) as admin:
        token = admin.create_delegation_token("User:eve")
        admin.renew_delegation_token(token.proof)
        admin.expire_delegation_token(token.proof)
    (line,) = audited.await_lines(action="create_delegation_token")
    assert (line["principal"], line["resources"], line["outcome"]) == ("User:admin", ["token of eve"], "done")
    for action in ("renew_delegation_token", "expire_delegation_token"):
        (line,) = audited.await_lines(action=action)
        assert line["outcome"] == "done"
    text = (audited.folder / "audit-1.jsonl").read_text()
    assert [secret for secret in (token.password, token.proof.hex(), "unguessable") if secret in text] == []


def test_logins_by_certificate(audited):
    own = {
        "ssl_certificate_location": audited.authority.certificate("alice"),
        "ssl_key_location": audited.authority.key("alice"),
    }
    with Admin(audited.tls, security_protocol="SSL", ssl_ca_location=audited.authority.ca, **own) as admin:
        admin.topics()
    (line, *_) = audited.await_lines(kind="login", action="tls", outcome="done")
    assert line["principal"] == "User:CN=alice"
    assert line["listener"] == "SSL"
    with pytest.raises(ClientError), Admin(
        audited.tls, security_protocol="SSL", ssl_ca_location=audited.authority.ca, timeout_ms=5_000
    ) as admin:  # fmt: skip
        admin.topics()
    (line, *_) = audited.await_lines(kind="login", action="tls", outcome="refused")
    assert line["errors"]


def test_refusals_are_counted(audited):
    """A client that repeats its request has a line, and then counts."""
    rule = AccessRule(
        AclResourceType.TOPIC, "orders", PatternType.LITERAL, "User:eve", "*", Operation.DESCRIBE, Permission.ALLOW
    )  # fmt: skip
    with Admin(audited.sasl, **audited.settings("admin")) as admin:
        admin.create_access_rules([rule])
    with Producer(audited.sasl, **audited.settings("eve"), idempotent=False) as producer:
        for _ in range(5):
            with pytest.raises(BrokerError):
                producer.send("orders", b"payload").result(timeout_ms=1_000 * SOON_S)
    wanted = {"kind": "refusal", "action": "produce", "principal": "User:eve", "resources": ["topic orders"]}
    found = audited.await_lines(5, **wanted)
    assert found[0]["count"] == 1
    assert len(found) <= 5


def test_no_secret_is_in_it(audited):
    text = (audited.folder / "audit-1.jsonl").read_text()
    assert [password for password in (*PASSWORDS.values(), "wrong", "payload") if password in text] == []

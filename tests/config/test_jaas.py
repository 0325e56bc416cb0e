"""JAAS texts of Kafka's configs: the users in them, and what is refused without showing a password."""

import pytest

from headrace.model.configs import BrokerConfig, ConfigError
from headrace.model.jaas import jaas_error, parse_jaas

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def test_users_are_the_options_with_their_prefix():
    module = parse_jaas(f'{MODULE}\n  username="admin"\n  password="x y"\n user_alice="a;\\"b\\\\" user_bob=plain;')
    assert module.name == "PlainLoginModule"
    assert module.users == {"alice": 'a;"b\\', "bob": "plain"}
    assert module.options["username"] == "admin"
    assert "plain" not in repr(module)


@pytest.mark.parametrize(
    "text",
    ["", "x", MODULE, f'{MODULE} user_a="secret"', f'{MODULE} user_a="secret', f"{MODULE} user_a=1 user_a=2;",
     f"{MODULE} user_a=1; {MODULE} user_b=2;", f"{MODULE} =;", "x" * 40_000],
)  # fmt: skip
def test_what_is_wrong_is_named_without_the_secret(text):
    reason = jaas_error(text)
    assert reason
    assert "secret" not in reason
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_texts({"sasl.jaas.config": text})
    assert "secret" not in str(refused.value)


def test_a_listener_may_have_users_of_its_own():
    config = BrokerConfig.from_texts(
        {
            "listeners": "INNER://:0,OUTER://:0",
            "listener.security.protocol.map": "INNER:SASL_PLAINTEXT,OUTER:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "sasl.jaas.config": f"{MODULE} user_alice=1;",
            "listener.name.inner.plain.sasl.jaas.config": f"{MODULE} user_bob=2;",
            "listener.name.outer.scram-sha-256.sasl.jaas.config": "a.ScramLoginModule required username=x password=y;",
        }
    )
    assert config.sasl.users_of_plain("INNER") == {"bob": "2"}
    assert config.sasl.users_of_plain("OUTER") == {"alice": "1"}
    assert "bob" not in repr(config.sasl)


def test_other_names_with_the_prefix_are_unknown():
    for name in ("listener.name.inner.gssapi.sasl.jaas.config", "listener.name.inner.sasl.jaas.config"):
        with pytest.raises(ConfigError, match="unknown config"):
            BrokerConfig.from_texts({name: f"{MODULE} user_bob=2;"})

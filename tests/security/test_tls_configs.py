"""Configs of TLS: where keys come from, and values that are refused with what to do."""

import subprocess
from pathlib import Path

import pytest

from headrace.model.configs import BrokerConfig, ConfigError
from headrace.model.configs.tls import SecurityProtocol
from headrace.ports.real.tls import server_tls

from .certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


def config(authority, **more):
    return BrokerConfig.from_texts(
        {**authority.configs(), **{name.replace("_", "."): text for name, text in more.items()}}
    )


def inline(authority, separator):
    """The key and the chain of the broker as texts on one line, or with line ends."""
    text = Path(authority.broker).read_text()
    end = text.index("-----BEGIN CERTIFICATE-----")
    return {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.key": text[:end].strip().replace("\n", separator),
        "ssl.keystore.certificate.chain": text[end:].strip().replace("\n", separator),
    }


def test_a_listener_has_the_protocol_of_its_name_or_of_the_map(authority):
    named = BrokerConfig.from_texts(
        {
            **authority.configs(),
            "listeners": "SSL://127.0.0.1:0,INNER://127.0.0.1:0,SAFE://127.0.0.1:0",
            "listener.security.protocol.map": "SSL:SSL,INNER:PLAINTEXT,SAFE:SSL",
        }
    )
    assert named.security_protocols == {
        "SSL": SecurityProtocol.SSL,
        "INNER": SecurityProtocol.PLAINTEXT,
        "SAFE": SecurityProtocol.SSL,
    }


@pytest.mark.parametrize("separator", ["\n", " "])
def test_keys_may_be_texts(authority, separator):
    server_tls(BrokerConfig.from_texts(inline(authority, separator)).tls, None)


def test_keys_may_be_in_a_pkcs12_file(authority, tmp_path):
    path = tmp_path / "broker.p12"
    command = ["openssl", "pkcs12", "-export", "-in", authority.broker, "-out", str(path), "-passout", "pass:secret"]
    subprocess.run(command, check=True, capture_output=True)
    more = {"ssl_keystore_type": "PKCS12", "ssl_keystore_location": str(path)}
    server_tls(config(authority, **more, ssl_keystore_password="secret").tls, None)
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.password is wrong"):
        server_tls(config(authority, **more, ssl_keystore_password="other").tls, None)


def test_keys_may_have_a_password(authority, tmp_path):
    path = tmp_path / "broker.pem"
    command = ["openssl", "pkcs8", "-topk8", "-in", authority.broker, "-passout", "pass:secret"]
    key = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    text = Path(authority.broker).read_text()
    path.write_text(key + text[text.index("-----BEGIN CERTIFICATE-----") :])
    server_tls(config(authority, ssl_keystore_location=str(path), ssl_key_password="secret").tls, None)
    with pytest.raises(ConfigError, match=r"ssl\.key\.password"):
        server_tls(config(authority, ssl_keystore_location=str(path), ssl_key_password="other").tls, None)
    with pytest.raises(ConfigError, match=r"ssl\.key\.password"):
        server_tls(config(authority, ssl_keystore_location=str(path)).tls, None)


def test_files_that_have_not_changed_are_not_loaded_again(authority):
    first = server_tls(config(authority).tls, None)
    assert server_tls(config(authority).tls, first) is first
    assert server_tls(config(authority, ssl_client_auth="required").tls, first) is not first


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        ({"listeners": "SSL://:0"}, "has no certificate"),
        ({"listeners": "SSL://:0", "ssl.keystore.key": "x"}, "has no certificate"),
        ({"listeners": "SSL://:0", "ssl.keystore.location": "a", "ssl.keystore.key": "x"}, "only once"),
        (
            {"listeners": "SSL://:0", "ssl.keystore.location": "a", "ssl.client.auth": "required"},
            "no authority is trusted",
        ),
        ({"ssl.keystore.type": "JKS"}, "keytool"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "TLSv1.2, TLSv1.3"),
        ({"ssl.principal.mapping.rules": "RULE:("}, "must look like"),
        ({"listeners": "SASL_SSL://:0"}, "has no certificate"),
        (
            {
                "listeners": "PLAINTEXT://:0,CONTROLLER://:0",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
            },
            "cluster key",
        ),
    ],
)
def test_configs_that_cannot_work_are_refused(configs, reason):
    with pytest.raises(ConfigError, match=reason):
        BrokerConfig.from_texts(configs)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"ssl_keystore_location": "/nowhere/broker.pem"}, "cannot be read"),
        ({"ssl_truststore_location": "/nowhere/ca.pem"}, "cannot be read"),
        ({"ssl_cipher_suites": "TLS_RSA_WITH_RC4_128_MD5"}, "unknown or weak"),
        ({"ssl_cipher_suites": "TLS_AES_256_GCM_SHA384", "ssl_enabled_protocols": "TLSv1.2"}, "no suite"),
    ],
)
def test_files_and_suites_are_checked_when_they_are_loaded(authority, more, reason):
    with pytest.raises(ConfigError, match=reason):
        server_tls(config(authority, **more).tls, None)


@pytest.mark.parametrize("name", ["ssl_keystore_location", "ssl_truststore_location", "headrace_ssl_crl_location"])
def test_files_that_are_not_pem_are_refused(authority, tmp_path, name):
    path = tmp_path / "file"
    path.write_bytes(b"\xfe\xed\xfe\xed not PEM")
    with pytest.raises(ConfigError, match="PEM"):
        server_tls(config(authority, **{name: str(path)}).tls, None)


def test_secrets_are_neither_described_nor_printed(authority):
    configs = BrokerConfig.from_texts({**inline(authority, "\n"), "ssl.key.password": "a secret"})
    described = {entry.key.name: entry.value for entry in configs.describe()}
    for name in ("ssl.key.password", "ssl.keystore.key", "ssl.keystore.certificate.chain"):
        assert described[name] is None
    assert "secret" not in repr(configs.tls)
    assert "PRIVATE KEY" not in repr(configs.tls)

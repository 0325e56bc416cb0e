"""Secrets of a broker are in nothing that others see, and requests cannot read the broker's files or variables."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.client import Admin, ConfigResource, NewTopic, Producer, ResourceType
from headrace.client.errors import AuthenticationFailed
from headrace.client.types import ConfigChange, ConfigOperation, Outcome
from headrace.model.errors import ErrorCode
from headrace.ports.real.held_ports import held_port

pytestmark = pytest.mark.process

SECRETS = {"plain": "correct-horse", "key": "battery-staple", "variable": "hush-hush"}
CONFIG = """\
listeners=LOCAL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0
listener.security.protocol.map=LOCAL:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.jaas.config=PlainLoginModule required user_alice="${file:FOLDER/secrets:plain}";
listener.name.local.plain.sasl.jaas.config=PlainLoginModule required user_bob="${env:HUSH}";
ssl.key.password=battery-staple
headrace.log.level=debug
headrace.metrics.listen=127.0.0.1:METRICS
log.dirs=FOLDER/data
"""


class Running:
    def __init__(self, process, folder, metrics_port):
        self.process = process
        self.folder = folder
        self.metrics_port = metrics_port
        lines = [process.stdout.readline() for _ in range(2)]
        self.local, self.secured = (line.removeprefix("headrace listening on ").strip() for line in lines)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    with held_port() as held:
        metrics_port = held.getsockname()[1]
        config, secrets, log = (folder / name for name in ("server.properties", "secrets", "log"))
        config.write_text(CONFIG.replace("FOLDER", str(folder)).replace("METRICS", str(metrics_port)))
        secrets.write_text(f"plain={SECRETS['plain']}\n")
        for file in (config, secrets):
            file.chmod(0o600)
        with log.open("w") as output, subprocess.Popen(
            [sys.executable, "-m", "headrace", "broker", "--config", str(config)],
            stdout=subprocess.PIPE, stderr=output, text=True, env={"HUSH": SECRETS["variable"], "PATH": ""},
        ) as process:  # fmt: skip
            yield Running(process, folder, metrics_port)
            process.terminate()


def settings(password):
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "alice",
        "sasl_password": password,
    }


def test_secrets_are_nowhere(broker):
    with Producer(broker.secured, **settings(SECRETS["plain"])) as producer:
        producer.send("orders", b"apples")  # the password of the file counts
    with pytest.raises(AuthenticationFailed), Admin(broker.secured, **settings("wrong")) as admin:
        admin.topics()
    with Admin(broker.local) as admin:
        described = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")], with_documentation=True)
        (entries,) = described.values()
        found = {entry.name: entry for entry in entries}
        assert found["sasl.jaas.config"].value is None
    seen = {
        "DescribeConfigs": repr(described),
        "the log": (broker.folder / "log").read_text(),
        "metrics": urlopen(f"http://127.0.0.1:{broker.metrics_port}/metrics", timeout=30).read().decode(),
        "arguments": Path(f"/proc/{broker.process.pid}/cmdline").read_bytes().decode(),
        "doctor": CliRunner().invoke(cli, ["doctor", "--bootstrap", broker.local, "--json"]).output,
        "configs": CliRunner()
        .invoke(cli, ["configs", "describe", "--broker", "1", "--bootstrap", broker.local])
        .output,
    }
    assert len(json.loads(seen["doctor"])) > 3
    assert "authentication failed" in seen["the log"]
    for where, text in seen.items():
        assert [secret for secret in SECRETS.values() if secret in text] == [], where


@pytest.mark.parametrize("reference", ["${env:HUSH}", "${file:FOLDER/secrets:plain}"])
def test_a_request_cannot_read_files_or_variables(broker, reference):
    """CVE-2024-31141: what a client sends is never expanded."""
    text = reference.replace("FOLDER", str(broker.folder))
    topic, node = ConfigResource(ResourceType.TOPIC, "t"), ConfigResource(ResourceType.BROKER, "1")
    with Admin(broker.local) as admin:
        created = admin.create_topics([NewTopic("t", configs={"headrace.compact.request": text})])
        assert admin.alter_configs({
            topic: [ConfigChange(ConfigOperation.SET, "headrace.compact.request", text)],
            node: [ConfigChange(ConfigOperation.SET, "ssl.truststore.location", text)],
        }) == {topic: Outcome(ErrorCode.NONE), node: Outcome(ErrorCode.NONE)}  # fmt: skip
        described = admin.describe_configs([topic, node])
        found = [{entry.name: entry.value for entry in described[each]} for each in (topic, node)]
        assert found[0]["headrace.compact.request"] == text
        assert found[1]["ssl.truststore.location"] == text
        admin.delete_topics(["t"])
    assert [secret for secret in SECRETS.values() if secret in repr((created, described))] == []

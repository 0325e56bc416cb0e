"""`headrace configs`, `cluster` and `doctor` against a broker."""

import json

import click
import pytest

from headrace.cli.main import cli
from headrace.cli.options import complete_topics
from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS
from headrace.testing import EmbeddedBroker
from tests.cli.conftest import Headrace, wait_for_completions

pytestmark = pytest.mark.process


def test_topic_configs(headrace: Headrace, topic: str) -> None:
    assert "--all shows them" in headrace("configs", "describe", "--topic", topic).stdout
    for wrong in (("describe",), ("alter", "--set", "retention.ms=5")):
        misspelt = headrace("configs", *wrong, "--topic", f"{topic}s", exit_code=1).stderr
        assert misspelt == (
            f'headrace: cannot {wrong[0]} topic "{topic}s": it does not exist, did you mean "{topic}"? '
            "(headrace topics list shows all)\n"
        )
    headrace("configs", "alter", "--topic", topic, "--set", "retention.ms=5", "--append", "cleanup.policy=compact")
    shown = headrace("configs", "describe", "--topic", topic).stdout
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["cleanup.policy", "delete,compact", "topic"],
        ["retention.ms", "5", "topic"],
    ]
    headrace("configs", "alter", "--topic", topic, "--delete", "retention.ms", "--subtract", "cleanup.policy=delete")
    entries = json.loads(headrace("configs", "describe", "--topic", topic, "--json").stdout)
    assert {entry["name"] for entry in entries} == {key.name for key in TOPIC_CONFIGS}
    policy = next(entry for entry in entries if entry["name"] == "cleanup.policy")
    assert policy["value"] == "compact"
    assert [synonym["from"] for synonym in policy["synonyms"]] == ["topic", "default"]


def test_broker_configs(headrace: Headrace) -> None:
    entries = json.loads(headrace("configs", "describe", "--broker", "1", "--json").stdout)
    assert {entry["name"] for entry in entries} == {key.name for key in BROKER_CONFIGS}

    def own() -> list[list[str]]:
        lines = headrace("configs", "describe", "--broker", "1").stdout.splitlines()
        return [line.split()[:2] for line in lines if line.startswith("log.retention.ms ")]

    assert own() == []
    headrace("configs", "alter", "--broker", "all", "--set", "log.retention.ms=12345")
    assert own() == [["log.retention.ms", "12345"]]
    headrace("configs", "alter", "--broker", "all", "--delete", "log.retention.ms")
    assert own() == []


def test_a_dry_run_is_checked_and_changes_nothing(headrace: Headrace, topic: str) -> None:
    result = headrace("configs", "alter", "--topic", topic, "--set", "retention.ms=5", "--dry-run")
    assert result.stdout == f'could change 1 config of topic "{topic}"\n'
    assert "--all shows them" in headrace("configs", "describe", "--topic", topic).stdout
    wrong = headrace("configs", "alter", "--topic", topic, "--set", "retention.ms=x", "--dry-run", exit_code=1)
    assert "must be a whole number" in wrong.stderr


def test_changes_a_running_broker_does_not_take(headrace: Headrace) -> None:
    result = headrace("configs", "alter", "--broker", "1", "--set", "node.id=3", exit_code=1)
    assert "set it in the file and restart" in result.stderr
    assert "unknown config" in headrace("configs", "alter", "--broker", "1", "--set", "nod.id=3", exit_code=1).stderr


def test_cluster(headrace: Headrace, topic: str) -> None:
    shown = headrace("cluster", "brokers").stdout
    assert "1 broker" in shown
    assert "running" in shown
    described = json.loads(headrace("cluster", "brokers", "--json").stdout)
    (broker,) = described["brokers"]
    assert broker["node_id"] == 1
    assert described["partitions_without_leader"] == 0
    assert broker["leads"] >= 3
    assert broker["log_dirs"][0]["error"] == "NONE"


def test_the_quorum_and_the_health_of_one_broker(headrace: Headrace, topic: str) -> None:
    assert headrace("cluster", "status").stdout.startswith("green: 1 broker, controller 1 of 1, ")
    status = json.loads(headrace("cluster", "status", "--json").stdout)
    assert (status["health"], status["reasons"], status["controller"], status["voters"]) == ("green", [], 1, [1])
    quorum = json.loads(headrace("cluster", "quorum", "--json").stdout)
    assert (quorum["leader"], quorum["voters"], quorum["observers"]) == (1, [1], [])
    assert quorum["replicas"][0]["lag"] == 0
    assert len(quorum["replicas"][0]["directory_id"]) == 22  # a UUID, as Kafka's tools print it
    assert "leader 1" in headrace("cluster", "quorum").stdout


def test_doctor_finds_the_broker_well_with_a_compacted_topic(headrace: Headrace, topic: str) -> None:
    headrace("configs", "alter", "--topic", topic, "--set", "cleanup.policy=compact")
    findings = json.loads(headrace("doctor", "--json").stdout)
    seen = {(finding["level"], finding["about"]) for finding in findings}
    assert ("ok", "broker") in seen
    assert ("ok", "address of broker 1") in seen
    assert ("ok", "partitions") in seen
    assert not [finding for finding in findings if "compact" in finding["advice"]]
    assert "IS" in headrace("doctor").stdout


def test_compact_asks_for_a_pass(headrace: Headrace, topic: str) -> None:
    refused = headrace("compact", "--topic", topic, exit_code=1).stderr
    assert f"headrace topics alter {topic} --config cleanup.policy=compact" in refused
    headrace("configs", "alter", "--topic", topic, "--set", "cleanup.policy=compact")
    assert f'started a compaction of topic "{topic}"' in headrace("compact", topic).stdout
    assert f'started a compaction of topic "{topic}"' in headrace("compact", "--topic", topic).stdout
    assert "headrace compact TOPIC" in headrace("compact", exit_code=2).stderr
    assert "does not exist" in headrace("compact", "--topic", "missing", exit_code=1).stderr


def test_doctor_with_a_named_broker_that_is_not_there(headrace: Headrace) -> None:
    result = headrace("doctor", "--bootstrap", "127.0.0.1:1", "--json", exit_code=1)
    (finding,) = [finding for finding in json.loads(result.stdout) if finding["about"] == "broker"]
    assert finding["level"] == "problem"


def test_topic_names_are_completed(broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context = click.Context(cli)
    context.params["bootstrap"] = broker.bootstrap_servers
    with monkeypatch.context() as patch:
        wait_for_completions(patch)
        assert complete_topics(context, click.Argument(["topic"]), topic[:-1]) == [topic]
        assert complete_topics(context, click.Argument(["topic"]), "zzz") == []
    context.params["bootstrap"] = "127.0.0.1:1"
    assert complete_topics(context, click.Argument(["topic"]), "") == []

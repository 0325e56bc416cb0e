"""`headrace topics` against a broker."""

import json
from pathlib import Path

import pytest

from headrace.testing import EmbeddedBroker
from tests.cli.conftest import Headrace

pytestmark = pytest.mark.process


def names(headrace: Headrace) -> set[str]:
    return {topic["name"] for topic in json.loads(headrace("topics", "list", "--json").stdout)}


def test_create_list_describe_delete(headrace: Headrace) -> None:
    created = headrace("topics", "create", "life", "--partitions", "2", "--config", "retention.ms=5000")
    assert created.stdout == 'created topic "life"\n'
    assert any(line.split() == ["life", "2", "1"] for line in headrace("topics", "list").stdout.splitlines())
    described = headrace("topics", "describe", "life").stdout
    assert "topic life  id " in described
    assert "2 partitions" in described
    assert [line for line in described.splitlines() if line.startswith("retention.ms")] == [
        "retention.ms  5000   topic"
    ]
    assert headrace("topics", "delete", "life", "--yes").stdout == 'deleted topic "life"\n'
    assert "life" not in names(headrace)


def test_describe_as_json(headrace: Headrace, topic: str) -> None:
    headrace("produce", topic, "--partition", "1", input="a\nb\n")
    (described,) = json.loads(headrace("topics", "describe", topic, "--json").stdout)
    assert described["name"] == topic
    assert [partition["end_offset"] for partition in described["partitions"]] == [0, 2, 0]
    assert described["partitions"][1]["size_bytes"] > 0
    assert described["configs"]["cleanup.policy"] == "delete"
    assert described["own_configs"] == {}


def test_creating_what_exists_fails_unless_allowed(headrace: Headrace, topic: str) -> None:
    refused = headrace("topics", "create", topic, exit_code=1)
    assert "TOPIC_ALREADY_EXISTS" in refused.stderr
    assert "already exists" in headrace("topics", "create", topic, "--if-not-exists").stdout


def test_one_bad_topic_does_not_stop_the_others(headrace: Headrace) -> None:
    result = headrace("topics", "create", "good", "bad name", exit_code=1)
    assert result.stdout == 'created topic "good"\n'
    assert 'cannot create topic "bad name": INVALID_TOPIC_EXCEPTION' in result.stderr
    headrace("topics", "delete", "good", "-y")


def test_a_wrong_config_name_is_met_with_the_nearest(headrace: Headrace) -> None:
    result = headrace("topics", "create", "orders", "--config", "retention.minutes=5", exit_code=1)
    assert 'unknown config "retention.minutes" for topic "orders": did you mean "retention.ms"?' in result.stderr
    assert "orders" not in names(headrace)
    assert "--config name=value" in headrace("topics", "create", "orders", "--config", "x", exit_code=2).stderr


def test_configs_without_effect_are_warned_about_and_promises_refused(headrace: Headrace, topic: str) -> None:
    told = 'headrace: config "segment.jitter.ms" is stored but has no effect in this release\n'
    assert headrace("topics", "create", "told", "--config", "segment.jitter.ms=5").stderr == told
    assert headrace("topics", "alter", topic, "--config", "segment.jitter.ms=5").stderr == told
    assert headrace("configs", "alter", "--topic", topic, "--set", "segment.jitter.ms=6").stderr == told
    assert headrace("configs", "alter", "--topic", topic, "--set", "segment.jitter.ms=0").stderr == ""
    refused = headrace("topics", "create", "tiered", "--config", "remote.storage.enable=true", exit_code=1).stderr
    assert "tiered storage is not supported" in refused


def test_alter(headrace: Headrace, topic: str) -> None:
    result = headrace(
        "topics", "alter", topic, "--partitions", "5", "--config", "segment.ms=9", "--config", "flush.ms=8"
    )
    assert f'topic "{topic}" has 5 partitions now' in result.stdout
    assert "changed 2 configs" in result.stdout
    assert "has 5 partitions already" in headrace("topics", "alter", topic, "--partitions", "5").stdout
    headrace("topics", "alter", topic, "--delete-config", "flush.ms")
    (described,) = json.loads(headrace("topics", "describe", topic, "--json").stdout)
    assert described["own_configs"] == {"segment.ms": "9"}


def test_partitions_only_grow(headrace: Headrace, topic: str) -> None:
    result = headrace("topics", "alter", topic, "--partitions", "2", exit_code=1)
    assert result.stderr == f'headrace: topic "{topic}" has 3 partitions, asked for 2: partitions can only grow\n'
    assert "nothing to change" in headrace("topics", "alter", topic, exit_code=2).stderr


def test_delete_warns_of_an_internal_topic(headrace: Headrace, topic: str) -> None:
    assert "is internal" not in headrace("topics", "delete", topic, input="n\n", exit_code=1).stderr
    headrace("groups", "reset", "warned", "--topic", topic, "--to-earliest", "--yes")
    asked = headrace("topics", "delete", "__consumer_offsets", input="n\n", exit_code=1)
    assert '"__consumer_offsets" is internal: the state that coordinators keep in it is lost' in asked.stderr


def test_delete_asks(headrace: Headrace, topic: str) -> None:
    asked = headrace("topics", "delete", topic, input="n\n", exit_code=1)
    assert f'delete 1 topic and all records ("{topic}")?' in asked.stderr
    assert topic in names(headrace)
    assert "--yes" in headrace("topics", "delete", topic, input="", exit_code=1).stderr
    missing = headrace("topics", "delete", "no-such-topic", "-y", exit_code=1).stderr
    assert (
        missing == 'headrace: cannot delete topic "no-such-topic": it does not exist (headrace topics list shows all)\n'
    )
    several = headrace("topics", "delete", topic, "no-such-topic", "-y", exit_code=1).stderr
    assert several.startswith("headrace: nothing deleted, cannot delete topic")
    headrace("topics", "describe", topic)


def test_a_topic_that_is_not_there(headrace: Headrace) -> None:
    result = headrace("topics", "describe", "no-such-topic", exit_code=1)
    assert 'cannot describe topic "no-such-topic": it does not exist (headrace topics list shows all)' in result.stderr

    assert "no-such-topic" not in names(headrace)


@pytest.mark.parametrize("command", [("topics", "describe"), ("topics", "delete"), ("consume",)])
def test_a_name_that_is_almost_right_is_guessed(headrace: Headrace, topic: str, command: tuple[str, ...]) -> None:
    wrong = headrace(*command, f"{topic}x", exit_code=1).stderr
    assert f'"{topic}x": it does not exist, did you mean "{topic}"? (headrace topics list shows all)' in wrong


def test_no_broker(headrace: Headrace) -> None:
    result = headrace("topics", "list", "--bootstrap", "127.0.0.1:1", exit_code=1)
    assert "check that a broker is running there, or start one with `headrace broker`" in result.stderr


class TestApply:
    def write(self, folder: Path, topics: object) -> str:
        path = folder / "topics.json"
        path.write_text(json.dumps({"topics": topics}))
        return str(path)

    def test_from_nothing_and_again(self, headrace: Headrace, tmp_path: Path) -> None:
        wanted = [{"name": "chat", "partitions": 2, "replication_factor": 1, "configs": {"retention.ms": 7000}}]
        file = self.write(tmp_path, wanted)
        result = headrace("topics", "apply", file, "--yes")
        assert "create" in result.stdout
        assert "made 1 change\n" in result.stdout
        assert "nothing to change" in headrace("topics", "apply", file, "--yes").stdout
        wanted[0].update(partitions=4, configs={"retention.ms": 8000})
        steps = json.loads(headrace("topics", "apply", self.write(tmp_path, wanted), "--yes", "--json").stdout)
        assert [(step["action"], step["from"], step["to"]) for step in steps] == [
            ("add partitions", "2", "4"),
            ("set config", "7000", "8000"),
        ]
        (described,) = json.loads(headrace("topics", "describe", "chat", "--json").stdout)
        assert len(described["partitions"]) == 4
        assert described["own_configs"] == {"retention.ms": "8000"}
        headrace("topics", "delete", "chat", "-y")

    def test_it_asks_and_dry_run_changes_nothing(self, headrace: Headrace, tmp_path: Path) -> None:
        file = self.write(tmp_path, [{"name": "not-yet"}])
        assert "make 1 change?" in headrace("topics", "apply", file, input="n\n", exit_code=1).stderr
        headrace("topics", "apply", file, "--dry-run")
        assert "not-yet" not in names(headrace)
        headrace("topics", "apply", file, input="y\n")
        assert "not-yet" in names(headrace)
        headrace("topics", "delete", "not-yet", "-y")

    def test_dry_run_has_the_broker_check(self, headrace: Headrace, tmp_path: Path) -> None:
        file = self.write(tmp_path, [{"name": "not-yet", "configs": {"tiers.hot": 5}}])
        result = headrace("topics", "apply", file, "--dry-run", exit_code=1)
        assert 'unknown config "tiers.hot"' in result.stderr
        file = self.write(tmp_path, [{"name": "not-yet", "configs": {"retention.minutes": 5}}])
        result = headrace("topics", "apply", file, "--dry-run", exit_code=2)
        assert 'did you mean "retention.ms"?' in result.stderr

    def test_refusals_change_nothing(self, headrace: Headrace, topic: str, tmp_path: Path) -> None:
        file = self.write(tmp_path, [{"name": "beside"}, {"name": topic, "partitions": 1}])
        result = headrace("topics", "apply", file, "--yes", exit_code=1)
        assert f'topic "{topic}" has 3, asked for 1: partitions can only grow; nothing was changed' in result.stderr
        assert "beside" not in names(headrace)

    def test_a_file_that_is_no_topics(self, headrace: Headrace, tmp_path: Path) -> None:
        file = self.write(tmp_path, [{"name": "a", "replicas": 3}])
        assert 'topic "a" has "replicas"' in headrace("topics", "apply", file, exit_code=2).stderr
        assert "No such file" in headrace("topics", "apply", str(tmp_path / "none.json"), exit_code=2).stderr


def test_prune_deletes_what_the_file_does_not_name(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from headrace.cli.main import cli

    with EmbeddedBroker() as own:
        own.create_topic("kept", configs={"flush.ms": "9"})
        own.create_topic("extra")
        file = tmp_path / "topics.toml"
        file.write_text('[[topics]]\nname = "kept"\n')
        arguments = ["topics", "apply", str(file), "--yes", "--json", "--bootstrap", own.bootstrap_servers]
        assert json.loads(CliRunner().invoke(cli, arguments).stdout) == []
        result = CliRunner().invoke(cli, [*arguments, "--prune"])
        assert [(step["action"], step["topic"]) for step in json.loads(result.stdout)] == [
            ("reset config", "kept"),
            ("delete", "extra"),
        ]
        listed = CliRunner().invoke(cli, ["topics", "list", "--json", "--bootstrap", own.bootstrap_servers])
        assert [topic["name"] for topic in json.loads(listed.stdout)] == ["kept"]

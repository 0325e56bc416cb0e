"""`headrace configs list`, which needs no broker."""

import json

from click import unstyle
from click.testing import CliRunner

from headrace.cli.configs import entry_text
from headrace.cli.main import cli
from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS


def test_all_configs_are_listed() -> None:
    result = CliRunner().invoke(cli, ["configs", "list"])
    assert result.exit_code == 0
    for key in (*TOPIC_CONFIGS, *BROKER_CONFIGS):
        assert f" {key.name} " in result.output


def test_a_terminal_of_80_columns_breaks_no_name_and_no_word() -> None:
    for table in (TOPIC_CONFIGS, BROKER_CONFIGS):
        for key in table:
            head, *meaning = unstyle(entry_text(table, key, width=80)).splitlines()
            assert head.startswith(f"{key.name}  {table.kind}, ")
            assert " ".join(" ".join(meaning).split()) == key.description
            assert all(len(line) <= 80 for line in meaning)


def test_one_table_or_a_part_of_a_name() -> None:
    topics = json.loads(CliRunner().invoke(cli, ["configs", "list", "--topic", "--json"]).output)
    assert {key["of"] for key in topics} == {"topic"}
    assert len(topics) == len(TOPIC_CONFIGS)
    few = json.loads(CliRunner().invoke(cli, ["configs", "list", "retention", "--json"]).output)
    assert {"retention.ms", "log.retention.hours"} <= {key["name"] for key in few}
    assert all("retention" in key["name"] for key in few)
    assert CliRunner().invoke(cli, ["configs", "list", "zzz"]).output == 'no config name contains "zzz"\n'
    misspelt = CliRunner().invoke(cli, ["configs", "list", "--topic", "retenton.ms"]).output
    assert misspelt == 'no config name contains "retenton.ms", did you mean "retention.ms"?\n'


def test_a_resource_must_be_named() -> None:
    for arguments in (["describe"], ["describe", "--topic", "a", "--broker", "1"], ["alter", "--set", "a=b"]):
        result = CliRunner().invoke(cli, ["configs", *arguments])
        assert result.exit_code == 2
        assert "give either --topic NAME or --broker ID" in result.stderr
    result = CliRunner().invoke(cli, ["configs", "alter", "--topic", "a"])
    assert result.exit_code == 2
    assert "nothing to change" in result.stderr

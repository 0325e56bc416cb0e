"""Files of topics in three formats, and hostile ones."""

import re
from pathlib import Path

import pytest

from headrace.operations import topic_files
from headrace.operations.topic_files import parse_document, read_topics
from headrace.operations.topic_plan import PlanError, WantedTopic

TOPICS = [WantedTopic(name="chat", partitions=2, configs={"retention.ms": "5"})]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.json", '{"topics": [{"name": "chat", "partitions": 2, "configs": {"retention.ms": 5}}]}'),
        ("t.toml", '[[topics]]\nname = "chat"\npartitions = 2\nconfigs = {"retention.ms" = 5}\n'),
        ("t.yaml", "topics:\n- name: chat\n  partitions: 2\n  configs: {retention.ms: 5}\n"),
        ("t.yml", "topics:\n- {name: chat, partitions: 2, configs: {retention.ms: 5}}\n"),
    ],
)
def test_formats(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert read_topics(path) == TOPICS


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.txt", b"{}", "must end in .json"),
        ("t.json", b"[\n{", "t.json:2: this is not JSON: "),
        ("t.toml", b"a = 1\nb = ?", "t.toml:2: this is not TOML: "),
        ("t.toml", b"a = 1\nb = [", "t.toml:2: this is not TOML: "),
        ("t.yaml", b"a: 1\nb: [", "t.yaml:2: this is not YAML: "),
        ("t.yaml", b"!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("t.json", b"\xff\xfe", "not UTF-8"),
        ("t.json", b"[" * 100_000, "nested too deeply"),
    ],
)
def test_wrong_files_are_refused(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(PlanError, match=message):
        read_topics(path)


def test_missing_and_oversize_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanError, match="No such file"):
        read_topics(tmp_path / "none.json")
    monkeypatch.setattr(topic_files, "FILE_LENGTH_MAX", 10)
    (tmp_path / "t.json").write_text("[" + " " * 20 + "]")
    with pytest.raises(PlanError, match="longer than 10"):
        read_topics(tmp_path / "t.json")


def test_yaml_aliases_serve_and_cannot_multiply() -> None:
    shared = "base: &base {a: 1}\nx: *base\ny: *base\n"
    assert parse_document(shared, ".yaml", "t") == {"base": {"a": 1}, "x": {"a": 1}, "y": {"a": 1}}
    bomb = "a: &a [1, 1]\n" + "".join(f"b{n}: &b{n} [*{'a' if n == 0 else f'b{n - 1}'}, *a]\n" for n in range(30))
    with pytest.raises(PlanError, match="t:2: an alias is not allowed inside an anchored block"):
        parse_document(bomb, ".yaml", "t")


YAML = """\
topics:
- name: chat
- name: orders
  {}
"""
TOML = """\
[[topics]]
name = "chat"
[[topics]]
name = "orders"
{}
"""
JSON = """\
{{"topics": [
  {{"name": "chat"}},
  {{"name": "orders",
   {}}}
]}}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (YAML.format("partitons: 3"), 't.yaml:4: topic "orders" has "partitons": did you mean "partitions"?'),
        (TOML.format("partitons = 3"), 't.toml:5: topic "orders" has "partitons": did you mean "partitions"?'),
        (JSON.format('"partitons": 3'), 't.json:4: topic "orders" has "partitons": did you mean "partitions"?'),
        (YAML.format("partitions: none"), 't.yaml:4: topic "orders": partitions must be a whole number'),
        (TOML.format("partitions = 0"), 't.toml:5: topic "orders": partitions must be a whole number'),
        (YAML.format("configs:\n    retention.mss: 3"), 't.yaml:5: unknown config "retention.mss"'),
        (TOML.format("configs = {retention.mss = 3}"), 't.toml:5: unknown config "retention.mss"'),
        (TOML.format('[topics.configs]\nretention.ms = "soon"'), 't.toml:6: config "retention.ms"'),
        (JSON.format('"configs": {"retention.ms": "soon"}'), 't.json:4: config "retention.ms"'),
        (YAML.format("configs: {a: [{b: 1}]}"), 't.yaml:4: topic "orders": config "a" must be a string'),
        ("topics:\n- nam: chat\n", 't.yaml:2: topic 1 has "nam": did you mean "name"?'),
        ("topics:\n- name: a\n- name: a\n", 't.yaml:3: topic "a" is in the file twice'),
        ("\ntopic:\n- name: a\n", 't.yaml:2: the file must contain one list named "topics"'),
    ],
)
def test_a_mistake_names_the_file_the_line_and_what_was_meant(text: str, message: str, tmp_path: Path) -> None:
    ending = message.partition(":")[0]
    (tmp_path / ending).write_text(text)
    with pytest.raises(PlanError, match=re.escape(message)):
        read_topics(tmp_path / ending)


def test_a_config_that_is_not_known_here_may_be_known_to_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("- {name: a, configs: {confluent.tier: 1}}")
    assert read_topics(tmp_path / "t.yaml")[0].configs == {"confluent.tier": "1"}

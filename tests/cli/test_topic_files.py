"""Files of topics in three formats, and hostile ones."""

from pathlib import Path

import pytest

from headrace.cli import topic_files
from headrace.cli.topic_files import parse_document, read_document
from headrace.cli.topic_plan import PlanError

TOPICS = {"topics": [{"name": "chat", "partitions": 2, "configs": {"retention.ms": 5}}]}


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
    assert read_document(path) == TOPICS


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.txt", b"{}", "must end in .json"),
        ("t.json", b"{", "t.json: "),
        ("t.toml", b"a =", "t.toml: "),
        ("t.yaml", b"a: [", "t.yaml: "),
        ("t.yaml", b"!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("t.json", b"\xff\xfe", "not UTF-8"),
        ("t.json", b"[" * 100_000, "nested too deeply"),
    ],
)
def test_wrong_files_are_refused(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(PlanError, match=message):
        read_document(path)


def test_missing_and_oversize_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanError, match="No such file"):
        read_document(tmp_path / "none.json")
    monkeypatch.setattr(topic_files, "FILE_LENGTH_MAX", 10)
    (tmp_path / "t.json").write_text("[" + " " * 20 + "]")
    with pytest.raises(PlanError, match="longer than 10"):
        read_document(tmp_path / "t.json")


def test_yaml_aliases_serve_and_cannot_multiply() -> None:
    shared = "base: &base {a: 1}\nx: *base\ny: *base\n"
    assert parse_document(shared, ".yaml", "t") == {"base": {"a": 1}, "x": {"a": 1}, "y": {"a": 1}}
    bomb = "a: &a [1, 1]\n" + "".join(f"b{n}: &b{n} [*{'a' if n == 0 else f'b{n - 1}'}, *a]\n" for n in range(30))
    with pytest.raises(PlanError, match="line 2: an alias may not stand inside an anchored block"):
        parse_document(bomb, ".yaml", "t")

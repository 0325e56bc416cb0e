"""Changes of a definition that may go on from an old checkpoint, and those that may not."""

from pathlib import Path

import pytest

from headrace.spark.pipelines.definition_reader import read_pipeline
from headrace.spark.pipelines.identity import digest, identity_of, incompatibilities

DEFINITION = """\
name: n
source:
  topic: a
  format: json
  schema: id STRING, at TIMESTAMP
  watermark: {column: at, delay: 1 minute}
transform:
  sql: SELECT id, 'a  b' FROM input -- all
sink: {topic: b}
trigger: 1 second
"""


def identity(folder: Path, *replaced: str, stateful: bool) -> object:
    file = folder / "pipeline.yml"
    text = DEFINITION.replace(*replaced) if replaced else DEFINITION
    assert not replaced or text != DEFINITION
    file.write_text(text)
    return identity_of(read_pipeline(file), is_stateful=stateful)


CHANGES = [
    (("1 second", "5 seconds"), False, False),
    (("topic: b", "topic: c"), False, False),
    (("-- all", "/* some */"), False, False),
    (("SELECT id,", "SELECT  id ,"), False, True),
    (("'a  b'", "'a b'"), False, True),
    (("id STRING", "id STRING, n INT"), False, True),
    (("1 minute", "2 minutes"), False, True),
    (("topic: a", "topic: z"), True, True),
    (("trigger: 1 second", "bad_records: {topic: dead}"), True, True),
    (("trigger: 1 second", "bad_records: {action: drop}"), False, False),
    (("name: n", "name: m"), True, True),
]


@pytest.mark.parametrize(("change", "stateless", "stateful"), CHANGES)
def test_what_a_checkpoint_depends_on(tmp_path: Path, change: tuple[str, str], stateless: bool, stateful: bool) -> None:
    for keeps_state, refused in ((False, stateless), (True, stateful)):
        old, new = identity(tmp_path, stateful=keeps_state), identity(tmp_path, *change, stateful=keeps_state)
        assert bool(incompatibilities(old, new)) is refused
        if refused:
            assert digest(old) != digest(new)


def test_a_transform_that_begins_to_keep_state_is_refused(tmp_path: Path) -> None:
    old = identity(tmp_path, stateful=False)
    new = identity(tmp_path, "SELECT id,", "SELECT DISTINCT id,", stateful=True)
    assert incompatibilities(old, new) == ("the transform changed, and it keeps state that the old one created",)


def test_the_bytes_of_a_python_file_count(tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text("def f(rows):\n    return rows\n")
    change = ("sql: SELECT id, 'a  b' FROM input -- all", "python: code.py:f")
    old = identity(tmp_path, *change, stateful=True)
    assert digest(old) == digest(identity(tmp_path, *change, stateful=True))
    code.write_text("def f(rows):\n    return rows.distinct()\n")
    assert incompatibilities(old, identity(tmp_path, *change, stateful=True))

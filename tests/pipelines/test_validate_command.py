"""`headrace pipeline init` and `validate`, which need neither a broker nor Spark."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli

pytestmark = pytest.mark.process

BROKEN = "name: n\nsource: {topic: a}\nsink: {topic: b}\ntrigger: sometimes\n"


def test_the_example_is_valid_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "my orders"
    written = CliRunner().invoke(cli, ["pipeline", "init", str(folder)])
    assert written.exit_code == 0, written.output
    checked = CliRunner().invoke(cli, ["pipeline", "validate", str(folder)])
    assert checked.exit_code == 0, checked.output
    assert 'pipeline "my-orders" is valid (1 source, 1 sink)' in checked.output
    again = CliRunner().invoke(cli, ["pipeline", "init", str(folder)])
    assert again.exit_code == 1
    assert "already exists: choose another folder" in again.output


def test_mistakes_are_printed_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yml"
    file.write_text(BROKEN)
    told = CliRunner().invoke(cli, ["pipeline", "validate", str(file)])
    assert told.exit_code == 1
    assert f'{file}:4: trigger: "sometimes" is not a trigger' in told.output
    as_json = CliRunner().invoke(cli, ["pipeline", "validate", "--json", str(tmp_path)])
    assert as_json.exit_code == 1
    answer = json.loads(as_json.output)
    assert (answer["file"], answer["valid"]) == (str(file), False)
    assert [(each["file"], each["line"]) for each in answer["problems"]] == [(str(file), 4)]


def test_validate_imports_no_spark(tmp_path: Path) -> None:
    CliRunner().invoke(cli, ["pipeline", "init", str(tmp_path / "p")])
    code = (
        "import sys; from headrace.cli.main import cli\n"
        "cli.main(['pipeline', 'validate', sys.argv[1]], standalone_mode=False)\n"
        "heavy = {'pyspark', 'pyarrow', 'numpy', 'pandas', 'py4j'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "p")], capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr

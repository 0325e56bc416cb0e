"""The files around the code agree with each other: versions, workflow, hooks, markers and the chores of `make`."""

import importlib.metadata
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

import headrace
from tools import dev
from tools.unit_tests import is_left_out, pytest_ignore_collect

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def test_the_version_is_written_in_one_place() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert importlib.metadata.version("headrace") == headrace.__version__


def test_the_workflow_runs_the_supported_pythons_as_continuous_integration_does() -> None:
    job = read_yaml(".github/workflows/ci.yml")["jobs"]["test"]
    classifier = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    supported = [match[1] for line in PROJECT["project"]["classifiers"] if (match := classifier.fullmatch(line))]
    assert job["strategy"]["matrix"]["python"] == supported
    assert sorted(name.removeprefix("python") for name in dev.NEWER_PYTHONS) == supported
    assert PROJECT["project"]["requires-python"] == f">={supported[0]}"
    assert job["steps"][-1] == {"run": ".ci/run"}


def test_every_hook_runs_a_tool_of_the_environment() -> None:
    (local,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert {hook["id"] for hook in local["hooks"]} == {"ruff-check", "ruff-format", "prose", "commit-subject"}
    assert all(hook["entry"].startswith(".venv/bin/") and hook["language"] == "system" for hook in local["hooks"])


def test_every_chore_is_a_target_of_make_and_is_documented() -> None:
    targets = re.search(r"^CHORES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets
    assert set(targets[1].split()) == set(dev.CHORES)
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in dev.CHORES if f"| `make {name}` |" not in contributing] == []


def test_every_marker_is_explained() -> None:
    markers = {line.partition(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    page = (ROOT / "tests" / "README.md").read_text()
    assert [marker for marker in sorted(markers) if f"| `{marker}` |" not in page] == []


def test_every_folder_of_tests_is_on_their_map() -> None:
    page = (ROOT / "tests" / "README.md").read_text()
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    assert [folder for folder in sorted(folders) if f"`{folder}`" not in page] == []


def test_modules_that_are_marked_as_a_whole_are_left_out_of_the_quick_run() -> None:
    assert is_left_out(ROOT / "tests" / "broker_process" / "test_kill.py")
    assert pytest_ignore_collect(ROOT / "tests" / "broker_process" / "test_kill.py") is True
    assert pytest_ignore_collect(ROOT / "tests" / "wire" / "test_frames.py") is None
    assert pytest_ignore_collect(ROOT / "tests" / "broker_process") is None


def test_settings_of_linters_do_not_install_the_environment_again() -> None:
    assert b"ruff" not in dev.installed_tables()
    assert b"crc32c" in dev.installed_tables()

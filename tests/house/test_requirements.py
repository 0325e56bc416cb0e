"""The pinned environments: complete, hashed, tied to no registry, and agreeing with each other."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return {match["name"].lower(): match["version"] for match in PIN.finditer(text)}


def bare_name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match
    return match[0].lower()


@pytest.mark.parametrize("name", ["core", "spark", "manager", "dev", "docs"])
def test_every_pin_has_a_hash_and_no_registry_is_named(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    assert "://" not in text
    assert "--index" not in text
    entries = re.split(r"\n(?=\S)", text.strip())
    assert len(entries) == len(PIN.findall(text)) > 10
    assert all(PIN.match(entry) and "--hash=sha256:" in entry for entry in entries)


def test_core_pins_every_dependency_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {bare_name(requirement) for requirement in project["dependencies"]} <= pins("core").keys()


def test_each_environment_holds_the_smaller_one_at_the_same_versions() -> None:
    assert pins("core").items() <= pins("spark").items() <= pins("dev").items()
    assert pins("core").items() <= pins("manager").items() <= pins("dev").items()

"""The walks of docs/internals: every function that a walk lists exists."""

import importlib
import re
from pathlib import Path

import pytest

from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS

INTERNALS = Path(__file__).resolve().parents[2] / "docs" / "internals"
WALKS = ("produce.md", "fetch.md", "join.md", "transaction.md", "batch-commits.md", "spark-source.md", "recovery.md")
STEPS_MIN = 5
STEP = re.compile(r"^ *\d+\. `(headrace\.[\w.]+)`", re.MULTILINE)
NAME = re.compile(r"`(headrace\.[a-z_]+\.[\w.]+)`")
CONFIG_NAMES = {key.name for configs in (BROKER_CONFIGS, TOPIC_CONFIGS) for key in configs}


def exists(dotted: str) -> bool:
    """Import the longest part that is a module, and look the rest up in it."""
    names = dotted.split(".")
    for count in range(len(names), 0, -1):
        try:
            found: object = importlib.import_module(".".join(names[:count]))
        except ModuleNotFoundError:
            continue
        for name in names[count:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


@pytest.mark.parametrize("page", WALKS)
def test_a_walk_lists_its_functions_in_order(page: str) -> None:
    assert len(STEP.findall((INTERNALS / page).read_text())) >= STEPS_MIN


@pytest.mark.parametrize("page", sorted(INTERNALS.glob("*.md")), ids=lambda page: page.name)
def test_every_function_that_a_page_names_exists(page: Path) -> None:
    missing = [name for name in NAME.findall(page.read_text()) if name not in CONFIG_NAMES and not exists(name)]
    assert not missing, f"{page.name} names what is not there: {missing}"


def test_the_map_links_to_every_page() -> None:
    """docs/internals/README.md is where a reader begins."""
    linked = set(re.findall(r"\]\(([a-z-]+\.md)", (INTERNALS / "README.md").read_text()))
    assert {page.name for page in INTERNALS.glob("*.md")} - {"README.md"} <= linked


def test_a_name_that_is_gone_is_found() -> None:
    assert exists("headrace.broker.net.loop.Loop.turn")
    assert not exists("headrace.broker.net.loop.Loop.spin")
    assert not exists("headrace.broker.nowhere.at_all")

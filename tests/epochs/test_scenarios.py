"""The scripts of tests/scenarios/epochs. HEADRACE_REWRITE_SCENARIOS=1 accepts what happens now: read the diff."""

import os
import pathlib

import pytest

from tests.epochs.scenario import rewritten

FOLDER = pathlib.Path(__file__).parents[1] / "scenarios" / "epochs"
SCRIPTS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_script(script):
    text = script.read_text()
    happened = rewritten(text)
    if os.environ.get("HEADRACE_REWRITE_SCENARIOS"):
        script.write_text(happened)
    assert happened == text


def test_there_are_scripts():
    assert len(SCRIPTS) >= 8

"""The scripts beside this file. HEADRACE_REWRITE_SCENARIOS=1 accepts what happens now: read the diff."""

import os
import pathlib

import pytest

from tests.batch_commits import scenario as batch_commits
from tests.groups import scenario as groups
from tests.raft import scenario as raft
from tests.transactions import scenario as transactions

HERE = pathlib.Path(__file__).parent
MACHINES = {"batch_commits": batch_commits, "groups": groups, "raft": raft, "transactions": transactions}
SCRIPTS = sorted(HERE.glob("*/*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[f"{script.parent.name}-{script.stem}" for script in SCRIPTS])
def test_script(script):
    text = script.read_text()
    happened = MACHINES[script.parent.name].rewritten(text)
    if os.environ.get("HEADRACE_REWRITE_SCENARIOS"):
        script.write_text(happened)
    assert happened == text


@pytest.mark.parametrize("machine", MACHINES)
def test_there_are_scripts(machine):
    assert len([script for script in SCRIPTS if script.parent.name == machine]) >= 8

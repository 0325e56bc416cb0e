"""A skipped test fails a run in continuous integration, and tells its reason everywhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
SKIPPING = """
import pytest

@pytest.mark.skip(reason="marked: install kcat")
def test_marked():
    pass

def test_called():
    pytest.skip("called: install kcat")

@pytest.mark.xfail(reason="known")
def test_expected_to_fail():
    assert False

def test_passes():
    pass
"""
SKIPPING_MODULE = """
import pytest

pytest.importorskip("a_package_nobody_has", reason="imported: install it")
"""


def outcome(folder: Path, *, ci: str) -> tuple[int, dict[str, int], str]:
    shutil.copy(CONFTEST, folder)
    (folder / "test_skipping.py").write_text(SKIPPING)
    (folder / "test_skipping_module.py").write_text(SKIPPING_MODULE)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "--continue-on-collection-errors", str(folder)],
        cwd=folder,
        env={**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", ran.stdout.splitlines()[-1])}
    return ran.returncode, counts, ran.stdout


def test_in_ci_a_skip_fails_and_says_why(tmp_path: Path) -> None:
    status, counts, printed = outcome(tmp_path, ci="true")
    assert status != 0
    assert "skipped" not in counts
    assert counts["failed"] + counts["errors"] == 3
    assert all(reason in printed for reason in ("marked: install kcat", "called: install kcat", "imported: install it"))


def test_elsewhere_a_skip_is_reported_and_passes(tmp_path: Path) -> None:
    status, counts, printed = outcome(tmp_path, ci="")
    assert status == 0
    assert (counts["skipped"], counts["passed"], counts["xfailed"]) == (3, 1, 1)
    assert "install kcat" in printed

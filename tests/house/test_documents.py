"""The documents: links lead somewhere, and the Python in them runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\((?!https?://)(?P<target>[^)#]*)(?:#(?P<anchor>[^)]*))?\)")
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PACKAGES = "model|wire|core|ports|log|client|broker|sim|testing|cli|tools|requirements|examples"
SOURCE_PATH = re.compile(rf"`((?:{PACKAGES})/[a-z0-9_./-]*)`")
RUN_SECONDS_MAX = 240

PROGRAMS = [
    pytest.param(block, id=f"{path.relative_to(ROOT)}-{number}")
    for path in DOCUMENTS
    for number, block in enumerate(PYTHON_BLOCK.findall(path.read_text()))
]


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for link in LINK.finditer(path.read_text()):
        target = (path.parent / link["target"]).resolve() if link["target"] else path
        assert target.exists(), f"{link[0]} in {path.name}"
        if link["anchor"]:
            assert link["anchor"] in anchors(target), f"{link[0]} in {path.name}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_files_that_are_named_exist(path: Path) -> None:
    for named in SOURCE_PATH.findall(path.read_text()):
        assert (ROOT / "src" / "headrace" / named).exists() or (ROOT / named).exists(), f"{named} in {path.name}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_python_in_the_documents_runs(program: str, tmp_path: Path) -> None:
    """A block that defines tests is run by pytest, any other by Python."""
    script = tmp_path / "test_document.py"
    script.write_text(program)
    runner = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if re.search(r"^def test_", program, re.MULTILINE) else []
    ran = subprocess.run(
        [sys.executable, *runner, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=RUN_SECONDS_MAX
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr

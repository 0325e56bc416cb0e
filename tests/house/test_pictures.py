"""The pictures of the documents: pages that explain a process have one, and those with a table are drawn from it."""

import re
from pathlib import Path

import pytest

from tools.generate_docs import DIAGRAMS

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
PICTURE = re.compile(r"^```mermaid\n|^!\[", re.MULTILINE)
WITHOUT_A_PROCESS = {
    "README.md": "a list of pages",
    "coming-from-other-clients.md": "the same task in each client, as code",
    "cookbook.md": "complete files",
}


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda page: page.name)
def test_a_page_of_the_guide_that_explains_a_process_has_a_picture(page: Path) -> None:
    assert bool(PICTURE.search(page.read_text())) is (page.name not in WITHOUT_A_PROCESS)


def test_the_front_page_shows_the_whole_system() -> None:
    assert "```mermaid\nflowchart" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("diagram", DIAGRAMS, ids=lambda diagram: diagram.page)
def test_a_diagram_with_a_table_is_drawn_from_it(diagram) -> None:
    found = diagram.pattern.search((ROOT / "docs" / diagram.page).read_text())
    assert found
    assert found[0].splitlines() == [diagram.heading, *diagram.draw()]

"""The tables of the generated reference are whole: a line break inside a cell would end the table."""

from pathlib import Path

import pytest

from tools.generate_docs import LIMITS, limit_rows, table

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
ESCAPED_BAR = r"\|"


def broken_lines(text: str) -> list[str]:
    """Return the lines of tables that are not rows with as many cells as the heading; an empty line ends a table."""
    broken, cells = [], 0
    for line in text.splitlines():
        bars = line.replace(ESCAPED_BAR, "").count("|")
        if not line:
            cells = 0
        elif not cells:
            cells = bars if line.startswith("| ") else 0
        elif bars != cells or not line.startswith("|") or not line.endswith("|"):
            broken.append(line)
    return broken


@pytest.mark.parametrize("page", ["limits.md", "configuration.md", "metrics.md", "api-versions.md", "authorization.md"])
def test_every_row_of_a_table_is_one_line(page: str) -> None:
    assert broken_lines((REFERENCE / page).read_text()) == []


def test_a_cell_with_a_line_break_or_a_bar_stays_a_cell() -> None:
    lines = [*table(("name", "meaning"), [("a", "first line\nsecond line"), ("b", "this | that")])]
    assert lines[2:] == ["| a | first line second line |", r"| b | this \| that |"]
    assert broken_lines("\n".join(lines)) == []
    assert broken_lines("| name |\n|---|\n| first line\nsecond line |") == ["| first line", "second line |"]


def test_every_limit_has_a_meaning() -> None:
    rows = [row for sources in LIMITS.values() for source in sources for row in limit_rows(*source)]
    assert [name for name, _value, meaning in rows if not meaning] == []
    assert {name for sources in LIMITS.values() for _module, only in sources for name in only} <= {
        name.strip("`") for name, _value, _meaning in rows
    }

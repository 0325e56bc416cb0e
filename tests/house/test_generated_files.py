"""Generated files are marked as such in .gitattributes, so that reviews collapse them."""

from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "docs", "requirements")
MARKS = ("Change the table, not this file.", "Change those, not this page.", "do not change this page.")
HEAD_CHARACTERS = 400
"""A generated file says so near its beginning."""


def marked_patterns() -> list[str]:
    lines = (ROOT / ".gitattributes").read_text().splitlines()
    return [line.split()[0].replace("**", "*") for line in lines if "linguist-generated=true" in line]


def test_every_generated_file_is_marked() -> None:
    patterns = marked_patterns()
    generated = [
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".md", ".json", ".txt")
        and any(mark in path.read_text(encoding="utf-8")[:HEAD_CHARACTERS] for mark in MARKS)
    ]
    assert len(generated) > 50
    assert [path for path in generated if not any(fnmatch(path, pattern) for pattern in patterns)] == []


def test_every_pattern_has_files() -> None:
    paths = [path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    assert [pattern for pattern in marked_patterns() if not any(fnmatch(path, pattern) for path in paths)] == []

"""Count phrases and openings that are hard to read; fail where a count exceeds its limit in prose_limits.json.

The limits only fall: lower them with `--write` after an edit that removes some.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = Path(__file__).with_name("prose_limits.json")
SOURCES = ("src", "tools", "tests", "examples", "compat")
DOCUMENTS = ("docs", "README.md", "CONTRIBUTING.md")
GENERATED = "messages"
SELF = Path(__file__).name

PHRASES = ("whoever", "nobody", "is told", "anew", "so many")
OPENINGS = ("What", "Who", "Whom", "Whose", "Which", "How", "Whether")
"""First words of a module's docstring that postpone its subject."""
OPENING_COUNT = "module docstrings that begin with a question word"
NAME_COUNT = "modules named like an activity (*ing.py)"
NOUNS = {"housekeeping", "logging", "routing", "string", "testing"}
"""Module names that end in "ing" and are nouns."""
CLASS_COUNT = "public class names defined more than once"


def source_files() -> Iterator[Path]:
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if GENERATED not in path.parts and path.name != SELF:
                yield path


def document_files() -> Iterator[Path]:
    for name in DOCUMENTS:
        place = ROOT / name
        yield from sorted(place.rglob("*.md")) if place.is_dir() else [place]


def count() -> Counter[str]:
    found: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    for path in source_files():
        text = path.read_text()
        found.update(phrase_counts(text))
        tree = ast.parse(text)
        opening = (ast.get_docstring(tree) or "").split(maxsplit=1)
        found[OPENING_COUNT] += bool(opening) and opening[0] in OPENINGS
        if path.is_relative_to(ROOT / "src"):
            found[NAME_COUNT] += path.stem.endswith("ing") and path.stem not in NOUNS
            classes.update(
                node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
            )
    for path in document_files():
        found.update(phrase_counts(path.read_text()))
    found[CLASS_COUNT] = sum(times > 1 for times in classes.values())
    return found


def phrase_counts(text: str) -> Counter[str]:
    words = re.sub(r"\s+", " ", text.lower())
    return Counter({f'"{phrase}"': len(re.findall(rf"\b{phrase}\b", words)) for phrase in PHRASES})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="lower the limits to what is counted now")
    arguments = parser.parse_args()
    found = count()
    limits: dict[str, int] = json.loads(LIMITS.read_text()) if LIMITS.is_file() else {}
    exceeded = {name: number for name, number in found.items() if number > limits.get(name, 0)}
    if arguments.write:
        lowered = {name: min(number, limits.get(name, number)) for name, number in sorted(found.items())}
        LIMITS.write_text(json.dumps(lowered, indent=2) + "\n")
        return 0
    for name, number in sorted(exceeded.items()):
        print(f"{name}: {number}, at most {limits.get(name, 0)}; see the rules of language in CONTRIBUTING.md")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())

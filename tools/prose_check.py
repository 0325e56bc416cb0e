"""Count phrases and names that are hard to read; fail where a count exceeds its limit in prose_limits.json.

The limits only fall: lower them with `--write` after an edit that removes some. `--show` prints all places that count.
`--commit-message FILE` checks the subject of a commit instead, as a `commit-msg` hook does.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = Path(__file__).with_name("prose_limits.json")
SOURCES = ("src", "tools", "tests", "examples", "compat")
DOCUMENTS = ("docs", "README.md", "CONTRIBUTING.md")
GENERATED = "messages"
EXEMPT = {Path(__file__).resolve(), ROOT / "CONTRIBUTING.md", ROOT / "tests" / "house" / "test_prose.py"}
"""Files that quote the phrases to avoid."""

PHRASES = {
    "whoever": "whoever",
    "nobody": "nobody",
    "is told": "is told",
    "are told": "(?:are|was|were|be|been|being) told",
    "anew": "anew",
    "so many": "so many",
    "whom": "whom",
    "somebody": "(?:some|any|every)body",
    "gives way": "(?:gives?|gave|giving|given) way",
    "shall": "shall",
    "without a word": "without a word",
    "some a turn": "some a turn",
    "goes on": "(?:go|goes|going|went) on",
    "is asked": "(?:is|are|was|were|be|been|being) asked",
    "again and again": "again and again",
    "says so": "(?:say|says|said) so",
}
"""What is counted, by the name of its limit; any white space matches a blank."""
ANY_PHRASE = re.compile(
    r"\b(?:" + "|".join(f"({pattern})" for pattern in PHRASES.values()).replace(" ", r"\s+") + r")\b"
)
"""Has one group per phrase, for text in lower case."""
LENIENT = {"goes on", "is asked", "again and again", "says so"}
"""Phrases that names of functions may have."""
OPENINGS = ("What", "Who", "Whom", "Whose", "Which", "How", "Whether")
"""First words of a docstring that postpone its subject."""

MODULE_OPENINGS = "module docstrings that begin with a question word"
OTHER_OPENINGS = "other docstrings that begin with a question word"
ACTIVITIES = "modules named like an activity (*ing.py)"
OTHER_ACTIVITIES = "modules of tests and tools named like an activity (*ing.py)"
NOUNS = {"blocking", "housekeeping", "logging", "routing", "string", "testing"}
"""Module names that end in "ing" and are nouns."""
FUNCTIONS = "names of functions that hold a phrase to avoid"
CLASSES = "public class names defined more than once"
CLASSES_OF_ONE_PACKAGE = "public class names defined more than once in one package"
PAIRED = ("blocking", "aio")
"""Packages of the client whose classes have the same names on purpose."""

SUBJECT = re.compile(r"^[a-z0-9][a-z0-9_./, -]*: (?P<verb>[a-z]+)\b.*[^.]$")
SUBJECT_LENGTH_MAX = 100
IMPERATIVES = {"bring", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed"}
"""Verbs that end like a participle and are none."""
GENERATED_SUBJECTS = ("Merge ", "Revert ", "fixup! ", "squash! ")


@dataclass(frozen=True, slots=True)
class Place:
    """A place that counts towards a limit."""

    limit: str
    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.limit}"


def source_files() -> Iterator[Path]:
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if GENERATED not in path.parts and path not in EXEMPT:
                yield path


def document_files() -> Iterator[Path]:
    for name in DOCUMENTS:
        place = ROOT / name
        for path in sorted(place.rglob("*.md")) if place.is_dir() else [place]:
            if path not in EXEMPT:
                yield path


def places() -> Iterator[Place]:
    classes: dict[str, list[Place]] = defaultdict(list)
    for path in source_files():
        text = path.read_text()
        yield from phrases(path, text)
        tree = ast.parse(text)
        yield from openings(path, tree)
        yield from functions(path, tree)
        in_package = path.is_relative_to(ROOT / "src")
        if path.stem.endswith("ing") and path.stem.rpartition("_")[2] not in NOUNS:
            yield Place(ACTIVITIES if in_package else OTHER_ACTIVITIES, path, 1)
        if in_package:
            for name, line in public_classes(tree):
                classes[name].append(Place(CLASSES, path, line))
    for path in document_files():
        yield from phrases(path, path.read_text())
    yield from repeated(classes)


def phrases(path: Path, text: str) -> Iterator[Place]:
    names = tuple(PHRASES)
    for match in ANY_PHRASE.finditer(text.lower()):
        assert match.lastindex
        yield Place(f'"{names[match.lastindex - 1]}"', path, text.count("\n", 0, match.start()) + 1)


def openings(path: Path, tree: ast.Module) -> Iterator[Place]:
    """Find docstrings that begin with a question word: of the module, of functions and classes, and of attributes."""
    for node in statements(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            first = node.value.value.split(maxsplit=1)
            if first and first[0].rstrip(",:") in OPENINGS:
                yield Place(MODULE_OPENINGS if node is tree.body[0] else OTHER_OPENINGS, path, node.lineno)


def functions(path: Path, tree: ast.Module) -> Iterator[Place]:
    """Find functions, tests above all, that are named with one of the phrases."""
    for node in statements(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found = ANY_PHRASE.search(node.name.replace("_", " "))
            if found and tuple(PHRASES)[(found.lastindex or 1) - 1] not in LENIENT:
                yield Place(FUNCTIONS, path, node.lineno)


def statements(block: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a module and of all its functions and classes; expressions hold no docstring."""
    for node in getattr(block, "body", ()):
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from statements(node)


def public_classes(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node.lineno


def repeated(classes: Mapping[str, Sequence[Place]]) -> Iterator[Place]:
    """Yield one place per name with several definitions; a blocking class and its asyncio twin are one definition."""
    for found in classes.values():
        distinct = list({unpaired(place.path): place for place in reversed(found)}.values())
        if len(distinct) > 1:
            yield distinct[0]
        packages = Counter(package(place.path) for place in distinct)
        for place in {package(place.path): place for place in distinct}.values():
            if packages[package(place.path)] > 1:
                yield Place(CLASSES_OF_ONE_PACKAGE, place.path, place.line)


def unpaired(path: Path) -> Path | str:
    """Return one value for the modules of both fronts of the client, and the path itself for any other module."""
    return "front" if path.parent.name in PAIRED and path.parent.parent.name == "client" else path


def package(path: Path) -> tuple[str, ...]:
    """Return the package below `headrace` that a module belongs to, such as `headrace.client`."""
    return path.relative_to(ROOT / "src").parts[:2]


def count() -> Counter[str]:
    zero = dict.fromkeys([f'"{name}"' for name in PHRASES], 0)
    names = (ACTIVITIES, OTHER_ACTIVITIES, FUNCTIONS, CLASSES, CLASSES_OF_ONE_PACKAGE)
    other = (MODULE_OPENINGS, OTHER_OPENINGS, *names)
    found = Counter({**zero, **dict.fromkeys(other, 0)})
    found.update(place.limit for place in places())
    return found


def exceeded(found: Mapping[str, int], limits: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in sorted(found.items()) if number > limits.get(name, 0)}


def subject_fault(message: str) -> str | None:
    """Return why the subject of a commit breaks the rule of CONTRIBUTING.md, or None."""
    subject = message.partition("\n")[0]
    if subject.startswith(GENERATED_SUBJECTS):
        return None
    form = SUBJECT.match(subject)
    if form is None:
        return "write `area: what the commit does`, in lower case and without a full stop"
    if len(subject) > SUBJECT_LENGTH_MAX:
        return f"the subject has {len(subject)} characters, at most {SUBJECT_LENGTH_MAX}"
    if form["verb"].endswith(("ed", "ing")) and form["verb"] not in IMPERATIVES:
        return f'begin with an imperative verb, not with "{form["verb"]}"'
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="lower the limits to what is counted now")
    parser.add_argument("--show", action="store_true", help="print every place that counts")
    parser.add_argument("--commit-message", type=Path, metavar="FILE", help="check the subject in this file only")
    arguments = parser.parse_args()
    if arguments.commit_message:
        fault = subject_fault(arguments.commit_message.read_text())
        print(f"commit subject: {fault}; see CONTRIBUTING.md" if fault else "", end="\n" if fault else "")
        return 1 if fault else 0
    if arguments.show:
        print(*places(), sep="\n")
        return 0
    found = count()
    limits: dict[str, int] = json.loads(LIMITS.read_text()) if LIMITS.is_file() else {}
    if arguments.write:
        lowered = {name: min(number, limits.get(name, number)) for name, number in sorted(found.items())}
        LIMITS.write_text(json.dumps(lowered, indent=2) + "\n")
        return 0
    over = exceeded(found, limits)
    for name, number in over.items():
        print(f"{name}: {number}, at most {limits.get(name, 0)}; see the rules of language in CONTRIBUTING.md")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())

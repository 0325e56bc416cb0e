"""Format lines of Python as the formatter would."""

import re
from collections.abc import Iterable, Sequence

LINE_LENGTH_MAX = 120
INDENT = "    "


def call(before: str, arguments: Sequence[str], after: str, depth: int) -> list[str]:
    """Return `before(arguments)after` on one line if it fits, else one argument per line."""
    line = f"{INDENT * depth}{before}({', '.join(arguments)}){after}"
    if len(line) <= LINE_LENGTH_MAX:
        return [line]
    inner = INDENT * (depth + 1)
    return [
        f"{INDENT * depth}{before}(",
        *(f"{inner}{argument}," for argument in arguments),
        f"{INDENT * depth}){after}",
    ]


def signature(name: str, parameters: str, result: str) -> list[str]:
    """Return the first line of a function, or three lines if it is long."""
    line = f"def {name}({parameters}) -> {result}:"
    if len(line) <= LINE_LENGTH_MAX:
        return [line]
    return [f"def {name}(", f"{INDENT}{parameters}", f") -> {result}:"]


def unpacking(names: Sequence[str], source: str, depth: int) -> list[str]:
    """Return `names = source` for a tuple, in parentheses where needed."""
    if len(names) == 1:
        return [f"{INDENT * depth}({names[0]},) = {source}"]
    line = f"{INDENT * depth}{', '.join(names)} = {source}"
    return [line] if len(line) <= LINE_LENGTH_MAX else call("", names, f" = {source}", depth)


def imports(module: str, offered: Iterable[str], code: str) -> list[str]:
    """Return an import of those offered names that the code mentions."""
    mentioned = set(re.findall(r"\w+", code))
    names = sorted(set(offered) & mentioned, key=_import_order)
    line = f"from {module} import {', '.join(names)}"
    if not names or len(line) <= LINE_LENGTH_MAX:
        return [line] if names else []
    return [f"from {module} import (", *(f"{INDENT}{name}," for name in names), ")"]


def _import_order(name: str) -> tuple[int, list[tuple[int, int | str]]]:
    """Order constants, classes, functions; numbers inside names by value, as the linter sorts them."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    pieces: list[tuple[int, int | str]] = [
        (0, int(piece)) if piece.isdigit() else (1, piece) for piece in re.split(r"(\d+)", name) if piece
    ]
    return kind, pieces

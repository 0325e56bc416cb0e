"""One finding of `headrace doctor`: how bad it is, what was seen, and what to do about it."""

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(NamedTuple):
    level: Level
    about: str
    seen: str
    advice: str = ""


def ok(about: str, seen: str) -> Finding:
    return Finding(Level.OK, about, seen)


def note(about: str, seen: str, advice: str = "") -> Finding:
    return Finding(Level.NOTE, about, seen, advice)


def warning(about: str, seen: str, advice: str) -> Finding:
    return Finding(Level.WARNING, about, seen, advice)


def problem(about: str, seen: str, advice: str) -> Finding:
    return Finding(Level.PROBLEM, about, seen, advice)

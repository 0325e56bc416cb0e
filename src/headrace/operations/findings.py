"""One finding of `headrace doctor`: severity, observation and advice."""

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

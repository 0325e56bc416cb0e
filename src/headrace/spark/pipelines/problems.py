"""Mistakes in a pipeline's files, each with its file and line and what to do about it."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

PROBLEMS_MAX = 50
"""Mistakes of one file that are reported; a file with more is most likely not a pipeline at all."""


class Place(NamedTuple):
    """A line of a file."""

    file: Path
    line: int

    def below(self, lines: int) -> "Place":
        return Place(self.file, self.line + lines)


class Problem(NamedTuple):
    file: Path
    line: int
    """Counted from 1; 0 for the file as a whole."""
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


class DefinitionError(Exception):
    """The files of a pipeline cannot be used as they are."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


class Findings:
    """Collects the mistakes of one file, so that all of them are reported at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def add(self, line: int, text: str) -> None:
        self.add_at(Place(self.file, line), text)

    def add_at(self, place: Place, text: str) -> None:
        """Add a mistake of this file, or of one that it is combined with."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(Problem(place.file, place.line, text))

    def raise_if_any(self, hide: Callable[[str], str] = str) -> None:
        """Raise the mistakes, if there are any; `hide` removes from their texts what must not be shown."""
        if self.problems:
            raise DefinitionError(each._replace(text=hide(each.text)) for each in self.problems)

"""What is wrong with a pipeline's files: each mistake with its file and line, and what to do about it."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PROBLEMS_MAX = 50
"""So many mistakes of one file are told; a file with more is most likely not a pipeline at all."""


class Problem(NamedTuple):
    file: Path
    line: int
    """Counted from 1; 0 where the file as a whole is meant."""
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


class DefinitionError(Exception):
    """The files of a pipeline cannot be used as they are."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


class Findings:
    """Collects the mistakes of one file, so that all of them are told at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def add(self, line: int, text: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(Problem(self.file, line, text))

    def raise_if_any(self) -> None:
        if self.problems:
            raise DefinitionError(self.problems)

"""Progress of the long runs, kept in a file: a run that is cut short continues where it was."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("record.json")
UNKNOWN_CODE = "unknown"

Figures = Mapping[str, int | list[int] | list[str]]


class FileRange(NamedTuple):
    """A part of a campaign that is run at once."""

    first: int
    size: int


class Failure(NamedTuple):
    what: str
    again: str
    """The command that repeats it."""


class Outcome(NamedTuple):
    """Result of one slice: numbers are added up, lists are joined."""

    figures: Figures
    failures: tuple[Failure, ...] = ()


@dataclass(slots=True, kw_only=True)
class Progress:
    done: int = 0
    """In slices that passed."""
    next: int = 0
    open: list[FileRange] = field(default_factory=list)
    """Begun and not ended, or failed: they are run again."""
    seconds: float = 0.0
    codes: list[str] = field(default_factory=list)
    """The commits on which it ran, in order."""
    figures: dict[str, int | list[int] | list[str]] = field(default_factory=dict)
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    """By the first of the slice."""

    def take(self, size: int, goal: int) -> FileRange | None:
        """The next slice that has not been begun."""
        if self.next >= goal:
            return None
        taken = FileRange(self.next, min(size, goal - self.next))
        self.next += taken.size
        self.open.append(taken)
        return taken

    def ended(self, part: FileRange, seconds: float, outcome: Outcome, code: str) -> None:
        if outcome.failures:
            self.failures[str(part.first)] = list(outcome.failures)
            return
        self.failures.pop(str(part.first), None)
        self.open.remove(part)
        self.done += part.size
        self.seconds += seconds
        if code not in self.codes:
            self.codes.append(code)
        for name, value in outcome.figures.items():
            before = self.figures.get(name)
            self.figures[name] = value if before is None else before + value  # type: ignore[operator]

    def number(self, name: str) -> int:
        value = self.figures.get(name, 0)
        assert isinstance(value, int)
        return value

    def values(self, name: str) -> list[int] | list[str]:
        value = self.figures.get(name, [])
        assert isinstance(value, list)
        return value


class Record:
    def __init__(self, path: Path = RECORD) -> None:
        self._path = path
        self._campaigns: dict[str, Progress] = {}
        if path.exists():
            for name, fields in json.loads(path.read_text()).items():
                failures = {first: [Failure(*one) for one in found] for first, found in fields.pop("failures").items()}
                begun = [FileRange(*part) for part in fields.pop("open")]
                self._campaigns[name] = Progress(**fields, open=begun, failures=failures)

    def of(self, campaign: str) -> Progress:
        return self._campaigns.setdefault(campaign, Progress())

    def forget(self, campaign: str) -> None:
        self._campaigns.pop(campaign, None)

    def save(self) -> None:
        """In one step, so that a run may be cut short at any time."""
        content = {name: asdict(progress) for name, progress in self._campaigns.items() if progress.next}
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(content, indent=1) + "\n")
        os.replace(part, self._path)


def code_now() -> str:
    """The commit that is checked out."""
    answer = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return answer.stdout.strip() or UNKNOWN_CODE

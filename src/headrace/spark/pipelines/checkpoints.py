"""What lies in the folder of a pipeline's checkpoint: Spark's own part by generation, and what we note beside it.

A rewind begins another generation: Spark's part of the old one stays as it is, and sinks take the new one's batches
for what they are, not for repeats of the old one's.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from headrace.spark.pipelines.identity import Identity, digest

NOTE_FILE = "headrace.json"
LOCK_FILE = "lock"
LOG_FILE = "run.log"
NOTE_VERSION = 1

Vector = Mapping[str, Mapping[str, int]]
"""Offsets as Spark's Kafka connector writes them: topic, then partition, then offset."""


def offsets_of(end: Mapping[str, Any] | None) -> dict[str, dict[str, int]]:
    """The topics in an offset of the data source, without what it keeps beside them under names that no topic has."""
    return {
        topic: {str(number): int(offset) for number, offset in partitions.items()}
        for topic, partitions in (end or {}).items()
        if ":" not in topic
    }


class CheckpointError(Exception):
    """The checkpoint cannot be used; the message says why and what to do."""


class CheckpointInUse(CheckpointError):
    """Another process on this machine runs the pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is known of a checkpoint beside Spark's own files."""

    identity: Identity | None = None
    generation: int = 0
    starts: Mapping[str, Vector] = field(default_factory=dict)
    """Where the streams of this generation begin, by the names of their sources; settled before the first batch."""
    letters: Vector = field(default_factory=dict)
    """Where the topic of dead letters ended when this generation began: letters below are of the time before it."""


def _identity(found: Mapping[str, Any] | None) -> Identity | None:
    if found is None:
        return None
    return Identity(
        name=found["name"],
        sources=tuple(found["sources"]),
        shapes=tuple(found["shapes"]),
        transform=found["transform"],
        is_stateful=found["is_stateful"],
    )


class Batch(NamedTuple):
    """One micro-batch as Spark's logs have it."""

    number: int
    planned_ms: int
    watermark_ms: int
    ends: tuple[Mapping[str, Any] | None, ...]
    """Where each source of the query ended."""
    is_committed: bool


class Checkpoint:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def log_file(self) -> Path:
        return self.folder / LOG_FILE

    def spark_folder(self, generation: int) -> Path:
        """Whole, as workers have other current folders."""
        return self.folder.absolute() / f"spark-{generation}"

    def note(self) -> Note:
        file = self.folder / NOTE_FILE
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Note()
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{file} cannot be read: {error}") from None
        if found.get("version") != NOTE_VERSION:
            raise CheckpointError(f"{file} is of another version of headrace: take a new checkpoint folder")
        return Note(
            identity=_identity(found["identity"]),
            generation=found["generation"],
            starts=found["starts"],
            letters=found.get("letters", {}),
        )

    def write_note(self, note: Note) -> None:
        known = digest(note.identity) if note.identity is not None else None
        self.write_json(NOTE_FILE, {"version": NOTE_VERSION, "definition": known, **asdict(note)})

    def write_json(self, name: str, value: object) -> None:
        """Whole or not at all, and on the disk when this returns."""
        file = self.folder / name
        fresh = file.with_suffix(".new")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with fresh.open("w", encoding="utf-8") as opened:
                json.dump(value, opened, indent=1)
                opened.flush()
                os.fsync(opened.fileno())
            fresh.replace(file)
        except OSError as error:
            raise CheckpointError(f"{file} cannot be written: {error.strerror}: free some space or move it") from None

    @contextmanager
    def locked(self, name: str = LOCK_FILE) -> Iterator[None]:
        """Nobody else on this machine does the same with the checkpoint meanwhile."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / name).open("a")
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint {self.folder} cannot be written: {error.strerror}: see to its owner and its rights, "
                "or name another folder as `checkpoint`"
            ) from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CheckpointInUse(
                    f"the checkpoint {self.folder} is in use by another run on this machine: "
                    "`headrace pipeline stop` ends it"
                ) from None
            yield

    def begin_generation(self, starts: Mapping[str, Vector], letters: Vector) -> Note:
        """From now on the sources begin there, and nothing is remembered of what was done."""
        note = self.note()
        fresh = replace(note, identity=None, generation=note.generation + 1, starts=starts, letters=letters)
        self.write_note(fresh)
        return fresh

    # Spark's logs

    def has_batches(self, generation: int) -> bool:
        return bool(self._numbers(generation, "offsets"))

    def batches(self, generation: int, limit: int | None = None) -> list[Batch]:
        """The newest `limit` ones, oldest first; files that are being written just now are left out."""
        committed = set(self._numbers(generation, "commits"))
        numbers = self._numbers(generation, "offsets")
        found = []
        for number in numbers[-limit:] if limit is not None else numbers:
            batch = self._batch(generation, number, number in committed)
            if batch is not None:
                found.append(batch)
        return found

    def _numbers(self, generation: int, log: str) -> list[int]:
        folder = self.spark_folder(generation) / log
        try:
            return sorted(int(name) for name in os.listdir(folder) if re.fullmatch("[0-9]+", name))
        except FileNotFoundError:
            return []

    def _batch(self, generation: int, number: int, is_committed: bool) -> Batch | None:
        file = self.spark_folder(generation) / "offsets" / str(number)
        try:
            _version, metadata, *ends = file.read_text(encoding="utf-8").splitlines()
            known = json.loads(metadata)
            return Batch(
                number=number,
                planned_ms=int(known["batchTimestampMs"]),
                watermark_ms=int(known["batchWatermarkMs"]),
                ends=tuple(None if end == "-" else json.loads(end) for end in ends),
                is_committed=is_committed,
            )
        except (OSError, ValueError, KeyError):
            return None

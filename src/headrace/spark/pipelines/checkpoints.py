"""The folder of a pipeline's checkpoint: Spark's own part by generation, and the notes of the pipeline.

A rewind begins another generation: Spark's part of the old one stays unchanged, and sinks treat the new generation's
batches as new, not as repeats of the old ones.
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

from headrace.spark.pipelines.identity import DefinitionIdentity, digest

NOTE_FILE = "headrace.json"
LOCK_FILE = "lock"
LOG_FILE = "run.log"
NOTE_VERSION = 1

Vector = Mapping[str, Mapping[str, int]]
"""Offsets as Spark's Kafka connector writes them: topic, then partition, then offset."""


def offsets_of(end: Mapping[str, Any] | None) -> dict[str, dict[str, int]]:
    """Return the topics in an offset of the data source, without its additions under names that no topic has."""
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
    """Notes about a checkpoint beside Spark's own files."""

    identity: DefinitionIdentity | None = None
    generation: int = 0
    starts: Mapping[str, Vector] = field(default_factory=dict)
    """The starts of the streams of this generation, by source name; fixed before the first batch."""
    letters: Vector = field(default_factory=dict)
    """The end of the dead letter topic when this generation began: dead letters below it are older than the
    generation.
    """
    texts: Mapping[str, str] = field(default_factory=dict)
    """The text of every key of the definition that ran last, by its path; secrets are references."""


def _identity(found: Mapping[str, Any] | None) -> DefinitionIdentity | None:
    if found is None:
        return None
    return DefinitionIdentity(
        name=found["name"],
        sources=tuple(found["sources"]),
        shapes=tuple(found["shapes"]),
        transform=found["transform"],
        is_stateful=found["is_stateful"],
    )


class Batch(NamedTuple):
    """One micro-batch as recorded in Spark's logs."""

    number: int
    planned_ms: int
    watermark_ms: int
    ends: tuple[Mapping[str, Any] | None, ...]
    """The end offsets of each source of the query."""
    is_committed: bool


class Checkpoint:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def log_file(self) -> Path:
        return self.folder / LOG_FILE

    def spark_folder(self, generation: int) -> Path:
        """Return an absolute path, because workers have other current directories."""
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
            raise CheckpointError(
                f"{file} was written by an incompatible version of headrace: use a new checkpoint folder"
            )
        return Note(
            identity=_identity(found["identity"]),
            generation=found["generation"],
            starts=found["starts"],
            letters=found.get("letters", {}),
            texts=found.get("texts", {}),
        )

    def write_note(self, note: Note) -> None:
        known = digest(note.identity) if note.identity is not None else None
        self.write_json(NOTE_FILE, {"version": NOTE_VERSION, "definition": known, **asdict(note)})

    def write_json(self, name: str, value: object) -> None:
        """Write the file atomically and durably."""
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
            raise CheckpointError(f"{file} cannot be written: {error.strerror}; free some space or move it") from None

    @contextmanager
    def locked(self, name: str = LOCK_FILE) -> Iterator[None]:
        """Hold a lock on the checkpoint for this machine."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / name).open("a")
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint {self.folder} cannot be written: {error.strerror}; check its owner and "
                "permissions, or set another folder as `checkpoint`"
            ) from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CheckpointInUse(
                    f"the checkpoint {self.folder} is in use by another run on this machine; `headrace "
                    "pipeline stop` ends it"
                ) from None
            yield

    def begin_generation(self, starts: Mapping[str, Vector], letters: Vector) -> Note:
        """Begin a generation: the sources begin at the given starts, and earlier progress is forgotten."""
        note = self.note()
        fresh = replace(note, identity=None, generation=note.generation + 1, starts=starts, letters=letters)
        self.write_note(fresh)
        return fresh

    # Spark's logs

    def has_batches(self, generation: int) -> bool:
        return bool(self._numbers(generation, "offsets"))

    def batches(self, generation: int, limit: int | None = None) -> list[Batch]:
        """Return the newest `limit` batches, oldest first; files that are still being written are left out."""
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

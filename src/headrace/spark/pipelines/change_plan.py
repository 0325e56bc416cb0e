"""Plan what the next run of a changed file would do to state, topics and tables: decided from facts, without Spark."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from headrace.spark.pipelines.checkpoints import Note
from headrace.spark.pipelines.definition import (
    DatabaseSinkDefinition,
    DeltaSinkDefinition,
    IcebergSinkDefinition,
    Pipeline,
    ReadAs,
    Sink,
    Source,
    TableSink,
    TopicSink,
    WriteMode,
)
from headrace.spark.pipelines.definition_reader import written_topics
from headrace.spark.pipelines.identity import identity_of, incompatibilities
from headrace.spark.pipelines.problems import Place

_PLACES = {"table": "database", "iceberg": "catalog"}
"""The keys of the addresses that make the names of tables unique."""
ABSENT = "(absent)"
"""The text of a key that only the other definition has."""


class StateAction(StrEnum):
    BEGIN = "begin"
    CONTINUE = "continue"
    REFUSE = "refuse"
    UNDECIDED = "undecided"
    """Only Spark knows whether the new transform keeps state."""


class StorageAction(StrEnum):
    """The action on a topic or a table."""

    CREATE = "create"
    KEEP = "keep"
    READ = "read"
    ABANDON = "abandon"
    """Nothing is written to it any more; what is there stays."""
    REFUSE = "refuse"


class TableFacts(NamedTuple):
    """A table that exists; the columns of its folders are None where they cannot be known."""

    partition_by: tuple[str, ...] | None
    problem: str = ""
    """The reason why the table cannot be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The state of the world before the change."""

    note: Note
    last_batch: int | None
    is_finished: bool
    """False if the last batch was planned and is not complete."""
    topics: Mapping[str, int]
    """The number of partitions by topic."""
    tables: Mapping[str, TableFacts]
    """The tables that exist, by the path in the file."""
    keeps_state: bool | None = None
    """True if the new transform keeps state; None if Spark was not asked."""


class KeyChange(NamedTuple):
    """A key with another value than in the definition that ran last."""

    key: str
    before: str
    after: str
    place: Place
    effect: str


class StorageStep(NamedTuple):
    name: str
    action: StorageAction
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    state: StateAction
    state_text: str
    changes: tuple[KeyChange, ...]
    topics: tuple[StorageStep, ...]
    tables: tuple[StorageStep, ...]
    refusals: tuple[str, ...] = field(default=())

    @property
    def is_refused(self) -> bool:
        return bool(self.refusals)


_AT_NEXT_BATCH = "from the next batch on"
_EFFECTS: tuple[tuple[str, str], ...] = (
    (r"sources?\.(\w+\.)?start", "none: the stream has begun; `headrace pipeline rewind` moves it"),
    (
        r"spark\.settings\.spark\.sql\.shuffle\.partitions",
        "for state that begins empty",
    ),
    (r"sinks?(\[\d+\])?\.(partitions|configs\..*)", "for topics that are created; existing ones keep theirs"),
    (r"(bootstrap|checkpoint|name|spark\..*|restart\..*)", "when the pipeline is started"),
)
"""The effects of changed keys, by patterns of their paths; the first that matches applies."""


def way_out(pipeline: Pipeline) -> str:
    """Return the advice about a definition that its checkpoint does not fit."""
    return (
        f"Undo the change, or start over with `headrace pipeline rewind {pipeline.folder} --to-earliest`, or use "
        "another name and checkpoint"
    )


def plan_change(pipeline: Pipeline, facts: Facts) -> ChangePlan:
    state, text, refusals = _state(pipeline, facts)
    before = facts.note.texts if facts.last_batch is not None else {}
    topics = [*_read_topics(pipeline, facts), *_written_topics(pipeline, facts, before)]
    tables = _tables(pipeline, facts, before)
    moved = _moved(pipeline, facts, before)
    refused = [f"{step.name}: {step.text}" for step in [*topics, *tables] if step.action is StorageAction.REFUSE]
    return ChangePlan(
        state=state,
        state_text=text,
        changes=tuple(_changes(pipeline, before)) if before else (),
        topics=tuple(topics),
        tables=tuple(tables),
        refusals=(*refusals, *moved, *refused),
    )


def _state(pipeline: Pipeline, facts: Facts) -> tuple[StateAction, str, tuple[str, ...]]:
    note = facts.note
    if note.identity is None or facts.last_batch is None:
        starts = ", ".join(f"{source.name} from {_start(source, note)}" for source in pipeline.sources)
        return StateAction.BEGIN, f"begins without state, because {pipeline.checkpoint} has no batch: {starts}", ()
    answers = (False, True) if facts.keeps_state is None else (facts.keeps_state,)
    found = [incompatibilities(note.identity, identity_of(pipeline, is_stateful=answer)) for answer in answers]
    batch = f"after batch {facts.last_batch}" if facts.is_finished else f"with a repeat of batch {facts.last_batch}"
    if all(found):
        text = f"the checkpoint {pipeline.checkpoint} does not fit"
        return StateAction.REFUSE, text, (f"{'; '.join(found[0])}. {way_out(pipeline)}",)
    if any(found):
        text = f"continues {batch}, if the new transform keeps no state: only Spark can tell (--spark)"
        return StateAction.UNDECIDED, text, ()
    return StateAction.CONTINUE, f"continues {batch}", ()


def _start(source: Source, note: Note) -> str:
    if source.read_as is ReadAs.TABLE:
        return "the whole table"
    return "the noted offsets" if source.name in note.starts else source.start


def _changes(pipeline: Pipeline, before: Mapping[str, str]) -> list[KeyChange]:
    after = pipeline.texts
    return [
        KeyChange(key, before.get(key, ABSENT), after.get(key, ABSENT), pipeline.place_of(key), _effect(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _effect(key: str) -> str:
    return next((effect for pattern, effect in _EFFECTS if re.fullmatch(pattern, key)), _AT_NEXT_BATCH)


def _read_topics(pipeline: Pipeline, facts: Facts) -> list[StorageStep]:
    found = []
    for name in sorted({topic for source in pipeline.sources for topic in source.topics}):
        is_there = name in facts.topics
        text = _count(facts.topics[name]) if is_there else f"does not exist (headrace topics create {name})"
        found.append(StorageStep(name, StorageAction.READ if is_there else StorageAction.REFUSE, text))
    return found


def _written_topics(pipeline: Pipeline, facts: Facts, before: Mapping[str, str]) -> list[StorageStep]:
    sinks = {topic: sink for sink in pipeline.sinks if isinstance(sink, TopicSink) for topic in sink.named_topics}
    names = sorted({topic for _, topic in written_topics(pipeline)})
    found = []
    for name in names:
        wanted = sinks[name].partitions if name in sinks else None
        if name not in facts.topics:
            text = "with the broker's number of partitions" if wanted is None else f"with {_count(wanted)}"
            found.append(StorageStep(name, StorageAction.CREATE, text))
            continue
        other = wanted is not None and wanted != facts.topics[name]
        text = f"has {_count(facts.topics[name])}" + (f", not {wanted}: it is not changed" if other else "")
        found.append(StorageStep(name, StorageAction.KEEP, text))
    gone = sorted(set(_topics_of(before)) - set(names))
    return found + [
        StorageStep(name, StorageAction.ABANDON, "is no longer written") for name in gone if name in facts.topics
    ]


def _count(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"


def _topics_of(texts: Mapping[str, str]) -> list[str]:
    """Return the topics that a definition names to be written to."""
    pattern = r"bad_records\.topic|expectations\[\d+\]\.quarantine|sinks?(\[\d+\])?\.topics?(\[\d+\])?"
    return [text for key, text in texts.items() if re.fullmatch(pattern, key)]


def _tables(pipeline: Pipeline, facts: Facts, before: Mapping[str, str]) -> list[StorageStep]:
    tables = [sink for sink in pipeline.sinks if isinstance(sink, TableSink)]
    found = [_table(sink, facts) for sink in tables]
    gone = sorted(set(table_names(before)) - {step.name for step in found})
    return found + [
        StorageStep(path, StorageAction.ABANDON, "is no longer written") for path in gone if path in facts.tables
    ]


def _table(sink: TableSink, facts: Facts) -> StorageStep:
    is_upsert = isinstance(sink, DeltaSinkDefinition | DatabaseSinkDefinition) and sink.mode is WriteMode.UPSERT
    how = "rows replace others by key" if is_upsert else "rows are appended"
    name = table_name_of(sink)
    known = facts.tables.get(name)
    if known is None:
        return StorageStep(name, StorageAction.CREATE, how)
    if known.problem:
        return StorageStep(name, StorageAction.REFUSE, known.problem)
    if isinstance(sink, DatabaseSinkDefinition):
        return StorageStep(name, StorageAction.KEEP, how)
    if known.partition_by is not None and known.partition_by != sink.partition_by:
        text = (
            f"is partitioned by {', '.join(known.partition_by) or 'nothing'}, and the file has "
            f"{', '.join(sink.partition_by) or 'nothing'}: use the same, or another folder"
        )
        return StorageStep(name, StorageAction.REFUSE, text)
    return StorageStep(name, StorageAction.KEEP, how)


def table_names(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the tables of a definition with the names of their sinks."""
    found = (
        (text, re.fullmatch(r"(sinks?(?:\[\d+\])?)\.(parquet|delta|iceberg|table)", key)) for key, text in texts.items()
    )
    return {
        f"{texts[f'{match[1]}.{_PLACES[match[2]]}']} {text}" if match[2] in _PLACES else text: match[1]
        for text, match in found
        if match is not None
    }


def table_name_of(sink: TableSink) -> str:
    """Return the name of a table in a plan."""
    if isinstance(sink, DatabaseSinkDefinition):
        return f"{sink.database} {sink.table}"
    return f"{sink.catalog} {sink.table}" if isinstance(sink, IcebergSinkDefinition) else sink.path


def _moved(pipeline: Pipeline, facts: Facts, before: Mapping[str, str]) -> tuple[str, ...]:
    if facts.last_batch is None or facts.is_finished:
        return ()
    return moved_tables(before, pipeline.sinks, facts.last_batch)


def moved_tables(before: Mapping[str, str], sinks: tuple[Sink, ...], batch: int) -> tuple[str, ...]:
    """Return why an unfinished batch cannot be repeated with these sinks.

    A table knows a batch by the place of its sink in the file. At another place it would get the batch a second time.
    """
    places = table_names(before)
    now = {table_name_of(sink): sink.name for sink in sinks if isinstance(sink, TableSink)}
    return tuple(
        f"batch {batch} is unfinished, and the table {path} moved from {places[path]} to {name}: it may get the batch "
        "twice. Keep the order of the sinks until the batch is complete"
        for path, name in now.items()
        if places.get(path, name) != name
    )

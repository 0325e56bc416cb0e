"""Read a `pipeline.yml` into a `Pipeline`, or raise an error that lists every mistake with its line."""

import re
from pathlib import Path

from headrace.core.groups.topic_patterns import NamePattern
from headrace.spark.pipelines.definition import (
    ATTEMPTS_MAX,
    EXPECTATIONS_MAX,
    INPUT_VIEW,
    NAME_LENGTH_MAX,
    PIPELINE_FILE,
    BadRecordAction,
    BadRecords,
    CheckedRows,
    Engine,
    Expectation,
    ExpectationAction,
    Pipeline,
    Restart,
    Source,
    SourceFormat,
    TopicSink,
    Transform,
    Trigger,
)
from headrace.spark.pipelines.durations import EXAMPLES, parse_duration
from headrace.spark.pipelines.layers import INCLUDE, Choices, read_layers
from headrace.spark.pipelines.nodes import YamlSection, read_text
from headrace.spark.pipelines.problems import DefinitionError, Findings, Place
from headrace.spark.pipelines.projects import PROJECT_FILES
from headrace.spark.pipelines.python_text import check_function, parse_reference
from headrace.spark.pipelines.reading_sinks import read_sinks
from headrace.spark.pipelines.reading_sources import read_sources
from headrace.spark.pipelines.reading_values import folder_path, topic_name
from headrace.spark.pipelines.sql_text import Mistake, check_expression, check_query
from headrace.spark.pipelines.variables import VARIABLES, Substitution

CHECKPOINT_DEFAULT = "checkpoint"
TRIGGER_DEFAULT_MS = 1_000
NO_CHOICES = Choices()
ONCE = ("once", "available_now")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OWN_SETTINGS = {
    "spark.master": "set spark.master instead, next to settings",
    "spark.app.name": "the name of the pipeline is used",
    "spark.sql.streaming.checkpointLocation": "set checkpoint instead",
}


def find_file(place: Path) -> Path:
    """Return the file that a folder or path on the command line stands for; it may be that of a Spark project."""
    if not place.is_dir():
        return place
    names = (PIPELINE_FILE, *PROJECT_FILES)
    return next((place / name for name in names if (place / name).exists()), place / PIPELINE_FILE)


def read_pipeline(place: Path, choices: Choices = NO_CHOICES) -> Pipeline:
    """Read the definition in a folder or file; DefinitionError lists all mistakes."""
    file = find_file(place)
    findings = Findings(file)
    places: dict[str, Place] = {}
    layers = read_layers(file, choices.environment, findings)
    substitution = Substitution(layers, choices.variables, file.parent, findings)
    replaced = substitution.mapping(layers)
    findings.raise_if_any(substitution.secrets.hide)  # the reader would report each wrong reference a second time
    root = YamlSection(replaced, "", findings, places)
    for key in (INCLUDE, VARIABLES):
        root.skip(key)
    name = root.parsed("name", _name)
    if "name" not in root:
        root.missing("name", "name: orders-by-country")
    sources = read_sources(root)
    pipeline = Pipeline(
        file=file,
        name=name or "",
        bootstrap=root.text("bootstrap"),
        sources=sources,
        transform=_transform(root, sources, substitution),
        expectations=_expectations(root),
        bad_records=_bad_records(root, sources),
        sinks=read_sinks(root),
        trigger=_trigger(root),
        checkpoint=file.parent / (root.parsed("checkpoint", folder_path) or _checkpoint(choices.environment)),
        restart=_restart(root),
        spark=_engine(root),
        environment=choices.environment,
        secrets=substitution.secrets,
        places=places,
        texts=substitution.texts,
    )
    root.finish()
    _check_loops(root, pipeline)
    findings.raise_if_any(substitution.secrets.hide)
    return pipeline


def _checkpoint(environment: str | None) -> str:
    """Return the default folder: each environment has its own."""
    return CHECKPOINT_DEFAULT if environment is None else f"{CHECKPOINT_DEFAULT}-{environment}"


def _name(text: str) -> str:
    if not _NAME.fullmatch(text) or len(text) > NAME_LENGTH_MAX:
        raise ValueError(
            f'"{text}" is not a valid name: use letters, digits, ".", "_" and "-", at most {NAME_LENGTH_MAX}'
        )
    return text


def _transform(root: YamlSection, sources: tuple[Source, ...], substitution: Substitution) -> Transform:
    file = root.findings.file
    section = root.section("transform")
    if section is None:
        if len(sources) > 1:
            root.missing("transform", "transform: {sql: SELECT ... FROM a JOIN b ...}")
        return Transform()
    sql, sql_file = section.text("sql"), section.text("sql_file")
    python = section.parsed("python", lambda text: parse_reference(text, file.parent))
    section.finish()
    if sql is not None and sql_file is not None:
        section.wrong("sql_file", "sql is given as well: keep one of the two")
    if not any(key in section for key in ("sql", "sql_file", "python")):
        section.missing("sql", "sql: SELECT * FROM input")
    views = {source.name for source in sources} | ({INPUT_VIEW} if python is not None else set())
    if sql_file is not None:
        sql = _sql_of_file(section, file.parent / sql_file, views, substitution)
    elif sql is not None:
        _tell(section.findings, section.place_of("sql"), "transform.sql", check_query(sql, views))
    if python is not None:
        if python.file.exists():
            root.findings.problems.extend(check_function(python, len(sources)))
        else:
            section.wrong("python", f"the file {python.file} does not exist")
    return Transform(sql=sql, sql_file=file.parent / sql_file if sql_file else None, python=python)


def _sql_of_file(section: YamlSection, path: Path, views: set[str], substitution: Substitution) -> str | None:
    try:
        text = substitution.text(read_text(path), Place(path, 1))
    except DefinitionError as error:
        section.wrong("sql_file", str(error))
        return None
    _tell(section.findings, Place(path, 1), "", check_query(text, views))
    return text


def _tell(findings: Findings, first: Place, path: str, mistakes: list[Mistake]) -> None:
    for mistake in mistakes:
        findings.add_at(first.below(mistake.line), f"{path}: {mistake.text}" if path else mistake.text)


def _expectations(root: YamlSection) -> tuple[Expectation, ...]:
    found: dict[str, Expectation] = {}
    for section in root.sections("expectations", most=EXPECTATIONS_MAX):
        name = section.parsed("name", _name)
        if "name" not in section:
            section.missing("name", "name: amount-is-positive")
        check = section.text("check")
        if check is None:
            section.missing("check", "check: amount > 0")
        else:
            _tell(section.findings, section.place_of("check"), f"{section.path}.check", check_expression(check))
        action = section.choice("action", ExpectationAction, ExpectationAction.WARN)
        quarantine = section.parsed("quarantine", topic_name)
        checked_rows = section.choice("on", CheckedRows, CheckedRows.OUTPUT)
        section.finish()
        if quarantine is not None and action is not ExpectationAction.DROP:
            section.wrong("quarantine", f"action {action} drops no rows: quarantine needs `action: drop`")
        if name in found:
            section.wrong("name", f'two expectations have the name "{name}"')
        if name is not None and check is not None:
            found[name] = Expectation(
                name=name, check=check, action=action, checked_rows=checked_rows, quarantine=quarantine
            )
    return tuple(found.values())


def _bad_records(root: YamlSection, sources: tuple[Source, ...]) -> BadRecords:
    section = root.section("bad_records")
    if section is None:
        return BadRecords()
    topic = section.parsed("topic", topic_name)
    default = BadRecordAction.DEAD_LETTER if topic else BadRecordAction.FAIL
    action = section.choice("action", BadRecordAction, default)
    section.finish()
    if action is BadRecordAction.DEAD_LETTER and topic is None and "topic" not in section:
        section.missing("topic", "topic: orders-dead")
    if action is not BadRecordAction.DEAD_LETTER and topic is not None:
        section.wrong("topic", f"action {action} writes no dead letters: leave one of the two out")
    if topic is not None and sources and all(source.format is SourceFormat.BINARY for source in sources):
        section.wrong("topic", "a record of format binary cannot be bad: choose json or string, or leave this out")
    return BadRecords(action=action, topic=topic)


def _trigger(root: YamlSection) -> Trigger:
    def trigger(text: str) -> Trigger:
        if text in ONCE:
            return Trigger(interval_ms=None)
        try:
            return Trigger(interval_ms=0 if text == "0" else parse_duration(text))
        except ValueError:
            raise ValueError(f'"{text}" is not a trigger: write once, or an interval: {EXAMPLES}') from None

    return root.parsed("trigger", trigger) or Trigger(interval_ms=TRIGGER_DEFAULT_MS)


def _restart(root: YamlSection) -> Restart:
    section = root.section("restart")
    if section is None:
        return Restart()
    attempts = section.integer("attempts", least=0, most=ATTEMPTS_MAX)
    backoff_ms = section.parsed("backoff", parse_duration)
    window_ms = section.parsed("window", parse_duration)
    section.finish()
    usual = Restart()
    return Restart(
        attempts=usual.attempts if attempts is None else attempts,
        backoff_ms=usual.backoff_ms if backoff_ms is None else backoff_ms,
        window_ms=usual.window_ms if window_ms is None else window_ms,
    )


def _engine(root: YamlSection) -> Engine:
    section = root.section("spark")
    if section is None:
        return Engine()
    master, settings = section.text("master"), section.pairs("settings")
    section.finish()
    for name in settings:
        if name in _OWN_SETTINGS:
            section.wrong(f"settings.{name}", _OWN_SETTINGS[name])
        elif not name.startswith("spark."):
            section.wrong(f"settings.{name}", "the names of Spark's settings begin with spark.")
    return Engine(master=master, settings=settings)


def _check_loops(root: YamlSection, pipeline: Pipeline) -> None:
    """Refuse a pipeline that writes to a topic that it reads: it would never end."""
    written = written_topics(pipeline)
    read = {topic for source in pipeline.sources for topic in source.topics}
    for source in pipeline.sources:
        if source.pattern is not None:
            read |= set(NamePattern(source.pattern).matching([topic for _, topic in written]))
    for path, topic in written:
        if topic in read:
            root.findings.add_at(pipeline.place_of(path), f'{path}: topic "{topic}" is also read by this pipeline')


def written_topics(pipeline: Pipeline) -> list[tuple[str, str]]:
    """Return every topic that is named to be written to, with the path of the key that names it."""
    found = []
    if pipeline.bad_records.topic is not None:
        found.append(("bad_records.topic", pipeline.bad_records.topic))
    for number, expectation in enumerate(pipeline.expectations):
        if expectation.quarantine is not None:
            found.append((f"expectations[{number}].quarantine", expectation.quarantine))
    for sink in pipeline.sinks:
        if isinstance(sink, TopicSink):
            if sink.topic is not None:
                found.append((f"{sink.name}.topic", sink.topic))
            found += [(f"{sink.name}.topics", topic) for topic in sink.topics]
    return found

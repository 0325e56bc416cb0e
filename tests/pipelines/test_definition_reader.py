"""Pipeline files: the definition that a right one becomes, and that every mistake is reported with its own line."""

import string
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.pipelines.definition import (
    BadRecordAction,
    CheckedRows,
    ConsoleSink,
    DeltaSinkDefinition,
    ExpectationAction,
    ParquetSinkDefinition,
    ReadAs,
    SchemaField,
    SourceFormat,
    TopicSink,
    Watermark,
    WriteMode,
)
from headrace.spark.pipelines.definition_reader import read_pipeline, written_topics
from headrace.spark.pipelines.nodes import FILE_LENGTH_MAX
from headrace.spark.pipelines.problems import DefinitionError

SMALL = """\
name: small
source: {topic: a}
sink: {topic: b}
"""
WHOLE = """\
name: whole
bootstrap: 127.0.0.1:9092
sources:
  orders:
    topics: [orders, orders-old]
    format: json
    schema: id STRING NOT NULL, at TIMESTAMP
    unknown_fields: reject
    start: 2026-05-31T12:00:00Z
    rows_per_batch: 1_000
    watermark: {column: at, delay: 10 minutes, window: 1 minute}
    options: {kafka.client.id: me}
  customers:
    topic: customers
    format: json
    schema: {id: string, name: string not null}
    read_as: table
transform:
  sql: |
    SELECT o.id, c.name
    FROM orders o JOIN customers c ON o.id = c.id
expectations:
  - {name: named, check: name IS NOT NULL, action: drop, quarantine: nameless}
  - {name: known, check: id <> '', action: fail, on: input}
bad_records: {topic: dead}
sinks:
  - {topic: out, key: id}
  - {topic_from: "concat('out-', id)", topics: [out-1, out-2], value: json}
  - {parquet: files, partition_by: [name]}
  - {delta: table, mode: upsert, keys: [id], order_by: at}
  - {console: true, rows: 5}
trigger: once
checkpoint: state
restart: {attempts: 0, backoff: 1 minute}
spark: {master: "local[1]", settings: {spark.sql.shuffle.partitions: 2}}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "pipeline.yml"
    file.write_text(text)
    return file


def problems(folder: Path, text: str) -> list[tuple[int, str]]:
    with pytest.raises(DefinitionError) as caught:
        read_pipeline(written(folder, text))
    return [(problem.line, problem.text) for problem in caught.value.problems]


def test_a_small_file_has_sane_defaults(tmp_path: Path) -> None:
    pipeline = read_pipeline(written(tmp_path, SMALL).parent)
    (source,) = pipeline.sources
    assert (source.name, source.topics, source.format, source.start) == (
        "input",
        ("a",),
        SourceFormat.BINARY,
        "earliest",
    )
    assert pipeline.sinks == (TopicSink(name="sink", topic="b"),)
    assert pipeline.trigger.interval_ms == 1_000
    assert pipeline.checkpoint == tmp_path / "checkpoint"
    assert pipeline.bad_records.action is BadRecordAction.FAIL
    lines = {path: place.line for path, place in pipeline.places.items()}
    assert lines == {"name": 1, "source": 2, "source.topic": 2, "sink": 3, "sink.topic": 3}
    assert {place.file for place in pipeline.places.values()} == {tmp_path / "pipeline.yml"}


def test_every_key_arrives(tmp_path: Path) -> None:
    pipeline = read_pipeline(written(tmp_path, WHOLE))
    orders, customers = pipeline.sources
    assert orders.topics == ("orders", "orders-old")
    assert orders.fields == (SchemaField("id", "string", True), SchemaField("at", "timestamp", False))
    assert orders.start == "1780228800000"
    assert orders.rows_per_batch == 1_000
    assert orders.watermark == Watermark(column="at", delay_ms=600_000, window_ms=60_000)
    assert orders.options == {"kafka.client.id": "me"}
    assert customers.read_as is ReadAs.TABLE
    assert customers.fields[1] == SchemaField("name", "string", True)
    first, second = pipeline.expectations
    assert (first.action, first.quarantine, first.checked_rows) == (
        ExpectationAction.DROP,
        "nameless",
        CheckedRows.OUTPUT,
    )
    assert (second.action, second.checked_rows) == (ExpectationAction.FAIL, CheckedRows.INPUT)
    assert pipeline.bad_records.topic == "dead"
    topic, routed, parquet, delta, console = pipeline.sinks
    assert isinstance(topic, TopicSink)
    assert isinstance(routed, TopicSink)
    assert (routed.topic, routed.topics, routed.value) == (None, ("out-1", "out-2"), None)
    assert parquet == ParquetSinkDefinition(name="sinks[2]", path="files", partition_by=("name",))
    assert delta == DeltaSinkDefinition(
        name="sinks[3]", path="table", mode=WriteMode.UPSERT, keys=("id",), order_by="at"
    )
    assert console == ConsoleSink(name="sinks[4]", rows=5)
    assert pipeline.trigger.interval_ms is None
    assert (pipeline.restart.attempts, pipeline.restart.backoff_ms) == (0, 60_000)
    assert pipeline.spark.settings == {"spark.sql.shuffle.partitions": "2"}
    assert pipeline.place_of("transform.sql").line == 20
    assert pipeline.place_of("sinks[1].topics").line == 28
    assert [topic for _, topic in written_topics(pipeline)] == ["dead", "nameless", "out", "out-1", "out-2"]


MISTAKES = [
    pytest.param("sorce: {}", 4, 'did you mean "source"?', id="unknown key"),
    pytest.param("name: again", 4, "given twice", id="key given twice"),
    pytest.param("trigger: sometimes", 4, "is not a trigger: write once", id="trigger"),
    pytest.param("trigger: [1]", 4, "a text is needed here, not a list", id="wrong kind"),
    pytest.param("restart: {attempts: many}", 4, 'whole number is needed here, not "many"', id="not a number"),
    pytest.param("restart: {attempts: -1}", 4, "-1 is not between 0 and 1000", id="number too small"),
    pytest.param("checkpoint: s3a://bucket/state", 4, "is a URI, but a folder is needed", id="checkpoint"),
    pytest.param("restart:\n  backoff: soon", 5, '"soon" is not a duration', id="duration"),
    pytest.param("restart: 3", 4, "a mapping is needed", id="text for a section"),
    pytest.param("expectations: {name: x}", 4, "a list is needed here", id="mapping for a list"),
    pytest.param("expectations:\n  - check: a > 0", 5, "lacks `name`", id="expectation without name"),
    pytest.param("expectations:\n  - name: a", 5, "lacks `check`", id="expectation without check"),
    pytest.param("expectations:\n  - name: a\n    check: a > (0", 6, "never closed", id="expectation with bad SQL"),
    pytest.param("expectations:\n  - {name: a, check: b, action: stop}", 5, "there are drop, fail, warn", id="action"),
    pytest.param("expectations:\n  - {name: a, check: b, quarantine: q}", 5, "needs `action: drop`", id="quarantine"),
    pytest.param("bad_records: {topic: d}", 4, "a record of format binary cannot be bad", id="binary cannot be bad"),
    pytest.param("bad_records: {action: dead_letter}", 4, "lacks `topic`", id="dead letters without a topic"),
    pytest.param("transform: {sql: SELECT * FROM inputs}", 4, 'did you mean "input"?', id="unknown view"),
    pytest.param("transform:\n  sql: |\n    SELECT a,\n      b,\n    FROM input", 7, "comma too many", id="comma"),
    pytest.param("transform: {sql: a, sql_file: b.sql}", 4, "sql is given as well", id="two texts"),
    pytest.param("transform: {sql_file: none.sql}", 4, "the file does not exist", id="missing SQL file"),
    pytest.param("transform: {python: none.py:f}", 4, "none.py does not exist", id="missing Python file"),
    pytest.param("transform: {python: none}", 4, "write `transform.py:function`", id="not a function"),
    pytest.param("transform: {}", 4, "lacks `sql`", id="empty transform"),
    pytest.param("spark: {settings: {spark.master: x}}", 4, "set spark.master instead", id="own setting"),
    pytest.param("spark: {settings: {master: x}}", 4, "begin with spark.", id="not a Spark setting"),
    pytest.param("sinks:\n  - {topic: x}", 4, "sink is given as well", id="sink and sinks"),
    pytest.param("sources: {b: {topic: x}}", 4, "source is given as well", id="source and sources"),
    pytest.param("checkpoint:", 4, "checkpoint: there is no value", id="nothing behind a key"),
    pytest.param("transform: ~", 4, "transform: there is no value", id="null for a section"),
    pytest.param("expectations: null", 4, "expectations: there is no value", id="null for a list"),
    pytest.param("spark: {settings: {spark.x: }}", 4, "settings.spark.x: there is no value", id="null in a mapping"),
    pytest.param("a: &x [1]\nb: *x", 5, "aliases are not supported", id="alias"),
    pytest.param("a: [1", 5, "this is not YAML", id="not YAML"),
]


@pytest.mark.parametrize(("addition", "line", "text"), MISTAKES)
def test_a_mistake_is_reported_in_its_line(tmp_path: Path, addition: str, line: int, text: str) -> None:
    found = problems(tmp_path, f"{SMALL}{addition}\n")
    assert any(at == line and text in said for at, said in found), found


SOURCE_MISTAKES = [
    ("{format: json}", "lacks `topic`"),
    ("{topic: a, topics: [b]}", "topic is given as well"),
    ("{topic: a b}", "is not a valid topic name"),
    ("{topic: a, format: xml}", "there are binary, json, string"),
    ("{topic: a, format: json}", "lacks `schema`"),
    ("{topic: a, schema: id STRING}", "format binary has no schema"),
    ("{topic: a, format: json, schema: id STRNG}", 'did you mean "string"?'),
    ("{topic: a, format: json, schema: id}", 'field "id" has no type'),
    ("{topic: a, format: json, schema: {id: strng}}", 'did you mean "string"?'),
    ("{topic: a, start: yesterday}", "is not a start"),
    ("{topic: a, rows_per_batch: 0}", "0 is not between 1"),
    ("{topic: a, options: {subscribe: b}}", "use the key `topic` instead"),
    ("{topic: a, options: {scann: direct}}", 'source.options.scann: unknown option "scann"'),
    ("{topic: a, options: {minPartitions: few}}", "source.options.minPartitions: "),
    ("{topic: a, options: {kafka.secruity.protocol: SSL}}", "source.options.kafka.secruity.protocol: "),
    ("{topic: a, read_as: table}", "must be read as a stream"),
    ("{topic: a, unknown_fields: reject}", "format binary has no fields"),
    ("{pattern: 'a['}", "is not a valid pattern of topics"),
    ("{topic: a, format: json, schema: at TIMESTAMP, watermark: {column: a, delay: 1 s}}", 'no column "a"'),
    ("{topic: a, format: json, schema: at STRING, watermark: {column: at, delay: 1 s}}", "needs a TIMESTAMP"),
    ("{topic: a, watermark: {column: timestamp}}", "lacks `delay`"),
    ("{topic: b}", 'topic "b" is also read by this pipeline'),
    ("{pattern: '[a-c]'}", 'sink.topic: topic "b" is also read by this pipeline'),
    ("{pattern: '(?=a)b'}", "is not a valid pattern of topics"),
    ("{topic: }", "source.topic: there is no value"),
    ("{topics: []}", "source.topics: in the list there is no value"),
    ("{topics: [a, ~]}", "source.topics: in the list there is no value"),
    ("{topic: a, format: json, schema: {}}", "source.schema: there is no field"),
    ("{topic: a, format: json, schema: {id: }}", "source.schema.id: there is no value"),
    ("{topic: a, start: '1969-12-31T23:59:59.999Z'}", "before 1970"),
    (f"{{topic: a, options: {{minPartitions: '{'9' * 5_000}'}}}}", "source.options.minPartitions: "),
    (f"{{topic: a, options: {{maxTriggerDelay: '{'9' * 5_000}s'}}}}", "source.options.maxTriggerDelay: "),
    ("a", "a mapping is needed"),
]


@pytest.mark.parametrize(("source", "text"), SOURCE_MISTAKES)
def test_a_wrong_source_is_reported(tmp_path: Path, source: str, text: str) -> None:
    found = problems(tmp_path, f"name: n\nsource: {source}\nsink: {{topic: b}}\n")
    assert any(text in said for _, said in found), found


SINK_MISTAKES = [
    ("{}", "has no kind: there are console, database, delta, iceberg, parquet, topic"),
    ("{topic: b, parquet: c}", "a sink has one kind"),
    ("{topic: b, kee: id}", 'did you mean "key"?'),
    ("{topic: b, key: 'a('}", "never closed"),
    ("{topic: b, delivery: twice}", "there are at-least-once, exactly-once"),
    ("{topic: b, topics: [c]}", "leave it out"),
    ("{topic: b, options: {topic: c}}", "use the key `topic` instead"),
    ("{delta: t, mode: upsert}", "lacks `keys`"),
    ("{delta: t, mode: upsert, keys: [a]}", "lacks `order_by`"),
    ("{delta: t, keys: [a]}", "`mode: upsert` only"),
    ("{parquet: 'hdfs://host/files'}", "is a URI"),
    ("{delta: 'file:/tmp/t'}", "is a URI"),
    ("{topic: b, options: {kafka.compresion.type: lz4}}", "sink.options.kafka.compresion.type: "),
    ("{topic: b, options: {subscribePattern: c}}", "use the key `pattern` instead"),
    ("{parquet: f, options: {targetFileByte: '1'}}", 'did you mean "targetFileBytes"?'),
    ("{delta: t, mode: upsert, keys: [a], order_by: b, options: {compression: zstd}}", "an upsert has no options"),
    ("{console: false}", "write true, or leave the sink out"),
    ("{console: true, rows: 0}", "0 is not between 1"),
    ("{topic: }", "sink.topic: there is no value"),
    (f"{{parquet: f, options: {{targetFileBytes: '{'9' * 5_000}'}}}}", "sink.options.targetFileBytes: "),
]


@pytest.mark.parametrize(("sink", "text"), SINK_MISTAKES)
def test_a_wrong_sink_is_reported(tmp_path: Path, sink: str, text: str) -> None:
    found = problems(tmp_path, f"name: n\nsource: {{topic: a}}\nsink: {sink}\n")
    assert any(line == 3 and text in said for line, said in found), found


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("name: n\nsource: {topic: a}\nsinks: []\n", 3, "sinks: there is none"),
        ("name: n\nsource: {topic: a}\nsinks:\n# - topic: b\n", 3, "sinks: there is no value"),
        ("name: n\nsources: {}\nsink: {topic: b}\n", 2, "sources: there is none"),
        ("name:\nsource: {topic: a}\nsink: {topic: b}\n", 1, "name: there is no value"),
    ],
)
def test_a_pipeline_from_nowhere_or_to_nowhere_is_reported(tmp_path: Path, text: str, line: int, said: str) -> None:
    assert any(at == line and said in each for at, each in problems(tmp_path, text))


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, "nme: x\nsource: {tpic: a}\nsink: {topc: b}\n")
    assert [line for line, _ in found] == [1, 1, 2, 2, 3]


def test_mistakes_of_other_files_name_those_files(tmp_path: Path) -> None:
    tmp_path.joinpath("query.sql").write_text("-- all\nSELECT *\nFROM other\n")
    tmp_path.joinpath("code.py").write_text("import surely_not_installed\n\n\ndef chnge(a, b):\n    return a\n")
    file = written(tmp_path, f"{SMALL}transform: {{sql_file: query.sql, python: code.py:change}}\n")
    with pytest.raises(DefinitionError) as caught:
        read_pipeline(file)
    found = {(problem.file.name, problem.line): problem.text for problem in caught.value.problems}
    assert 'the view "other" does not exist' in found["query.sql", 3]
    assert '"surely_not_installed" is not installed' in found["code.py", 1]
    assert 'did you mean "chnge"?' in found["code.py", 0]


@pytest.mark.parametrize(
    ("code", "line", "text"),
    [
        ("def change(:\n  pass\n", 1, "this is not Python"),
        ("x = 1\n", 0, "the file has none"),
        ("def change(a, b):\n  return a\n", 1, "must take 1 DataFrame"),
    ],
)
def test_a_wrong_function_is_reported(tmp_path: Path, code: str, line: int, text: str) -> None:
    tmp_path.joinpath("code.py").write_text(code)
    found = problems(tmp_path, f"{SMALL}transform: {{python: code.py:change}}\n")
    assert any(at == line and text in said for at, said in found), found


def test_a_function_file_is_read_but_not_run(tmp_path: Path) -> None:
    tmp_path.joinpath("code.py").write_text("def change(rows, more=None):\n    return rows\n\nraise SystemExit\n")
    pipeline = read_pipeline(written(tmp_path, f"{SMALL}transform: {{python: code.py:change}}\n"))
    assert pipeline.transform.python is not None
    assert pipeline.transform.python.function == "change"


def test_files_that_are_no_pipelines(tmp_path: Path) -> None:
    assert problems(tmp_path, "- a\n") == [(1, "a pipeline is a mapping: begin with `name: ...`")]
    assert problems(tmp_path, "a" * (FILE_LENGTH_MAX + 1))[0][1].startswith("the file is longer than")
    assert problems(tmp_path, "[" * 50)[0][1].startswith("deeper than")
    with pytest.raises(DefinitionError, match="the file does not exist"):
        read_pipeline(tmp_path / "nothing")
    tmp_path.joinpath("pipeline.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DefinitionError, match="not UTF-8"):
        read_pipeline(tmp_path)


YAML_LIKE = st.text(alphabet=string.ascii_lowercase[:6] + ":-[]{}&*|>'\"# \n", max_size=80)


@given(YAML_LIKE, st.integers(0, len(WHOLE)))
def test_no_text_does_more_than_be_refused(tmp_path_factory: pytest.TempPathFactory, noise: str, cut: int) -> None:
    file = tmp_path_factory.getbasetemp() / "noise.yml"
    file.write_text(WHOLE[:cut] + noise)
    with suppress(DefinitionError):
        read_pipeline(file)


def test_two_tables_are_not_in_one_folder(tmp_path: Path) -> None:
    found = problems(tmp_path, "name: n\nsource: {topic: a}\nsinks:\n  - {parquet: f}\n  - {delta: ./f}\n")
    assert found == [(5, 'sinks[1].delta: "./f" is already the folder of sinks[0]')]


TABLE_MISTAKES = [
    ("{database: mysql://h/d, table: t}", 'sinks[0].database: "mysql://h/d" is not an address of a database'),
    ("{database: postgresql://u:pw@h/d, table: t}", "sinks[0].database: the address contains a password"),
    ("{database: sqlite:///f.db}", "sinks[0] lacks `table`"),
    ("{database: sqlite:///f.db, table: s.t}", "SQLite has no schemas: write the table as t"),
    ("{database: sqlite:///f.db, table: a b}", 'sinks[0].table: "a b" is not a valid table name'),
    ("{database: sqlite:///f.db, table: t, mode: upsert}", "sinks[0] lacks `keys`"),
    ("{database: sqlite:///f.db, table: t, keys: [id]}", "this is for `mode: upsert` only"),
    ("{database: sqlite:///f.db, table: t, partition_by: [id]}", '"partition_by" is not known in sinks[0]'),
    ("{iceberg: t, catalog: sqlite:///c.db, warehouse: w}", "sinks[0].iceberg: a table is in a namespace"),
    ("{iceberg: s.t, catalog: file:///c.db, warehouse: w}", 'sinks[0].catalog: "file:" is not a catalog'),
    ("{iceberg: s.t}", "sinks[0] lacks `catalog`"),
    ("{iceberg: s.t, catalog: sqlite:///c.db}", "sinks[0] lacks `warehouse`"),
]


@pytest.mark.parametrize(("sink", "said"), TABLE_MISTAKES)
def test_a_wrong_sink_for_a_table_is_reported(tmp_path: Path, sink: str, said: str) -> None:
    found = problems(tmp_path, f"name: n\nsource: {{topic: a}}\nsinks:\n  - {sink}\n")
    assert any(line == 4 and said in text for line, text in found), found


def test_two_sinks_for_one_table_are_refused(tmp_path: Path) -> None:
    sink = "  - {database: 'sqlite:///f.db', table: t}\n"
    found = problems(tmp_path, f"name: n\nsource: {{topic: a}}\nsinks:\n{sink}{sink}")
    assert found == [(5, 'sinks[1].table: "t" is already the table of sinks[0]')]
    sink = "  - {iceberg: s.t, catalog: 'sqlite:///f.db', warehouse: w}\n"
    found = problems(tmp_path, f"name: n\nsource: {{topic: a}}\nsinks:\n{sink}{sink}")
    assert found == [(5, 'sinks[1].iceberg: "s.t" is already the table of sinks[0]')]

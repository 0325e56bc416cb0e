"""Projects of Spark's declarative pipelines: mistakes and failures by their lines, and how far they have read."""

import json
from pathlib import Path

import pytest

from headrace.model.ids import TopicPartition
from headrace.spark.pipelines.definition_reader import find_file
from headrace.spark.pipelines.problems import DefinitionError, Place
from headrace.spark.pipelines.project_failures import failure_reason
from headrace.spark.pipelines.project_progress import positions, run_report
from headrace.spark.pipelines.projects import Project, read_project
from headrace.spark.pipelines.sql_text import check_script, created_things

SPEC = "name: shop\nstorage: file:///tmp/storage\nlibraries:\n  - glob: {include: tables/**}\n"
PYTHON = """\
from pyspark import pipelines as dp


@dp.table
def orders():
    return None


@dp.materialized_view(name="named")
def other():
    return None


dp.create_sink("out", "headrace", {})


@dp.append_flow(target="out")
def to_out():
    return None
"""
SQL = """\
CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM orders;

CREATE STREAMING TABLE IF NOT EXISTS shop.`by day`
AS SELECT day, n
   FROM STREAM counted;
CREATE FLOW more AS INSERT INTO counted BY NAME SELECT 1;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "orders.py").write_text(PYTHON)
    (tmp_path / "tables" / "views.sql").write_text(SQL)
    (tmp_path / "spark-pipeline.yml").write_text(SPEC)
    return tmp_path


def project_in(folder: Path) -> Project:
    return read_project(find_file(folder))


def test_a_project_knows_where_everything_is_defined(folder: Path) -> None:
    project = project_in(folder)
    code, views = folder / "tables" / "orders.py", folder / "tables" / "views.sql"
    assert project.places == {
        "orders": Place(code, 5),
        "named": Place(code, 10),
        "out": Place(code, 14),
        "to_out": Place(code, 18),
        "counted": Place(views, 1),
        "by day": Place(views, 3),
        "more": Place(views, 6),
    }
    (folder / "pipeline.yml").write_text("name: x\n")
    assert find_file(folder) == folder / "pipeline.yml"


MISTAKES = [
    pytest.param({"spark-pipeline.yml": "storage: file:///x\n"}, ":1: the file lacks `name`", id="no name"),
    pytest.param({"spark-pipeline.yml": SPEC + "sorage: x\n"}, ':5: "sorage" is not known here', id="unknown key"),
    pytest.param(
        {"spark-pipeline.yml": SPEC.replace("file:///tmp/storage", "here")},
        ":2: storage: Spark needs a URI",
        id="place",
    ),
    pytest.param(
        {"spark-pipeline.yml": SPEC.replace("tables/**", "tables/*.py")},
        ':4: libraries[0].glob.include: "tables',
        id="glob",
    ),
    pytest.param(
        {"spark-pipeline.yml": SPEC.replace("tables/**", "none/**")},
        '"none/**" matches no file',
        id="glob without files",
    ),
    pytest.param(
        {"spark-pipeline.yml": SPEC + "configuration:\n  spark.sql.shuffle.partitions: 2\n"},
        ':6: configuration.spark.sql.shuffle.partitions: Spark needs a string here: write "2"',
        id="number",
    ),
    pytest.param(
        {"spark-pipeline.yml": SPEC + "configuration:\n  spark.master: local\n"},
        ":6: configuration.spark.master",
        id="master",
    ),
    pytest.param({"tables/a.txt": ""}, "tables/a.txt is neither .py nor .sql", id="other file"),
    pytest.param({"tables/a.py": "x = (\n"}, "a.py:1: this is not Python", id="no Python"),
    pytest.param({"tables/a.sql": "SELECT 1;\nSELECT (2\n;"}, 'a.sql:2: this "(" is never closed', id="no SQL"),
    pytest.param(
        {"tables/z.sql": "\nCREATE VIEW orders AS SELECT 1;"}, 'z.sql:2: "orders" is already defined in', id="twice"
    ),
]


@pytest.mark.parametrize(("files", "told"), MISTAKES)
def test_mistakes_are_reported_with_their_line(folder: Path, files: dict[str, str], told: str) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    with pytest.raises(DefinitionError) as caught:
        project_in(folder)
    assert told in str(caught.value)


def test_scripts_have_several_statements() -> None:
    assert check_script(SQL) == []
    assert list(created_things(SQL)) == [("view", "counted", 0), ("table", "shop.by day", 2), ("flow", "more", 5)]
    assert list(created_things("CREATE;\nSELECT 1;CREATE TABLE")) == []


TRACEBACK = """\
Traceback (most recent call last):
  File "/python/pyspark/pipelines/cli.py", line 341, in run
    register_definitions(spec_path, registry, spec, spark, dataflow_graph_id)
"""
FAILURES = [
    pytest.param(
        "2026-11-16 03:19:54: Failed to resolve flow: 'spark_catalog.default.by day'.\n"
        "Error: [UNRESOLVED_COLUMN.WITH_SUGGESTION] No column `n`. SQLSTATE: 42703; line 4 pos 2;\n"
        f"'Aggregate [n]\n{TRACEBACK}pyspark.errors.AnalysisException: \nFailed to resolve flows in the pipeline.\n",
        'views.sql:4: "by day": No column `n`.',
        id="flow in SQL",
    ),
    pytest.param(
        "2026-11-16 03:20:00: Failed to resolve flow: 'spark_catalog.default.orders'.\n"
        f"Error: [UNRESOLVED_COLUMN] no such column. SQLSTATE: 42703;\n'Project\n{TRACEBACK}pyspark.SomeException: \nx",
        'orders.py:5: "orders": no such column.',
        id="flow in Python",
    ),
    pytest.param(
        "2026-11-16 03:20:09: Flow 'spark_catalog.default.to_out' has FAILED.\n"
        "Error: [STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [USER] boom SQLSTATE: P0001\n==",
        'orders.py:18: "to_out": boom',
        id="flow that ran",
    ),
    pytest.param(
        '{traceback}  File "{folder}/tables/orders.py", line 6, in orders\n    return 1 / 0\n'
        "ZeroDivisionError: division by zero\n",
        "orders.py:6: ZeroDivisionError: division by zero",
        id="function that raises",
    ),
    pytest.param(
        "2026-11-16 03:19:57: Registering SQL file {folder}/tables/views.sql...\n"
        "{traceback}pyspark.errors.ParseException: \n[PARSE_SYNTAX_ERROR] Syntax error at 'FROM'. SQLSTATE: 42601 "
        "(line 5, pos 3)\n\n== SQL ==\n\n\nCREATE STREAMING TABLE IF NOT EXISTS shop.`by day`\nAS SELECT day, n\n"
        "   FROM STREAM counted\n---^^^\n",
        "views.sql:5: ParseException: Syntax error at 'FROM'.",
        id="SQL that is none",
    ),
    pytest.param("something else\n", "something else", id="other words"),
    pytest.param("", "it printed nothing", id="no words"),
]


@pytest.mark.parametrize(("printed", "told"), FAILURES)
def test_a_failure_is_reported_by_its_file_and_line(folder: Path, printed: str, told: str) -> None:
    text = printed.replace("{folder}", str(folder)).replace("{traceback}", TRACEBACK)
    assert failure_reason(project_in(folder), text.splitlines()).removeprefix(f"{folder}/tables/") == told


def write_batch(checkpoint: Path, number: int, *offsets: object, committed: bool = True) -> None:
    for log in ("offsets", "commits") if committed else ("offsets",):
        (checkpoint / log).mkdir(parents=True, exist_ok=True)
        (checkpoint / log / str(number)).write_text("\n".join(["v1", "{}", *map(json.dumps, offsets)]))


def test_a_report_says_how_far_the_flows_are(tmp_path: Path) -> None:
    storage = f"file://{tmp_path}"
    one, two, files = (tmp_path / "_checkpoints" / name / "0" for name in ("one", "two", "files"))
    write_batch(one, 0, {"t": {"0": 10, "1": 8}, "hr:start": {"t": {"0": 4, "1": 0}}})
    write_batch(files, 0, {"logOffset": 3})
    before = positions(storage)
    assert before is not None
    assert [position.ends for position in before.values()] == [{TopicPartition("t", 0): 10, TopicPartition("t", 1): 8}]
    first = run_report(0, began=0.0, seconds=2.0, before={}, after=before)
    assert (first["rows"]["read"], first["rows"]["written"], first["ends"]) == (14, None, {"t": {"0": 10, "1": 8}})
    write_batch(one, 1, {"t": {"0": 12, "1": 8}})
    write_batch(one, 2, {"t": {"0": 99, "1": 99}}, committed=False)
    write_batch(two, 0, {"t": {"0": 5}, "hr:start": {"t": {"0": 0}}})
    second = run_report(1, began=0.0, seconds=2.0, before=before, after=positions(storage))
    assert (second["rows"]["read"], second["rows_per_second"], second["ends"]) == (7, 3.5, {"t": {"0": 5, "1": 8}})
    assert positions("s3://bucket/storage") is None
    assert run_report(0, began=0.0, seconds=1.0, before=None, after=None)["rows"]["read"] is None

"""Run the user's own SQL and Python in a query; errors name the file and line."""

import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from headrace.spark.pipelines.definition import (
    DeltaSinkDefinition,
    ParquetSinkDefinition,
    Pipeline,
    PythonFunction,
    TopicSink,
)
from headrace.spark.pipelines.problems import DefinitionError, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SQL_LINE = re.compile(r"line (\d+)")
_SQL_ECHO = re.compile(r"\n== SQL.*", re.DOTALL)
_ERROR_CLASS = re.compile(r"^\[([A-Z_.0-9]+)\] ")
_PLAN_ECHO = re.compile(r";?\n['+:~ A-Z].*", re.DOTALL)
_FRAME = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+), in ', re.MULTILINE)
_SQL_FRAGMENT = re.compile(r"^== SQL \(line (?P<line>\d+), position \d+\) ==\n(?P<text>[^\n]*)", re.MULTILINE)
"""Where in a text the failed expression is."""
_NO_TOPIC = "a row has no topic"
NEEDS_WATERMARK = "Give the source a `watermark`, and group by a window of its column or by the column itself."


def query(spark: "SparkSession", pipeline: Pipeline) -> "DataFrame":
    """Return the result of the transform's SQL over the views."""
    from pyspark.errors import AnalysisException, ParseException

    assert pipeline.transform.sql is not None
    try:
        return spark.sql(pipeline.transform.sql.strip().rstrip(";"))
    except (ParseException, AnalysisException) as error:
        raise DefinitionError([_sql_problem(pipeline, str(error))]) from None


def _sql_problem(pipeline: Pipeline, message: str) -> Problem:
    found = _SQL_LINE.search(message)
    return _problem_of_query(pipeline, int(found[1]) if found else 1, _short(message))


def _short(message: str) -> str:
    """Shorten Spark's message about an invalid query to one line, without the query."""
    said = _SQL_ECHO.sub("", message).strip()
    said = " ".join(_PLAN_ECHO.sub("", _ERROR_CLASS.sub("", said)).split())
    return re.sub(r" SQLSTATE: \w+( \(line .*)?| \(line \d+, pos \d+\)", "", said)


def stream_problem(pipeline: Pipeline, message: str) -> Problem:
    """Return the problem of a query that Spark can compile but cannot run as a stream."""
    said = _short(message)
    if "watermark" in said:
        said = f"{said} {NEEDS_WATERMARK}"
    transform = pipeline.transform
    if transform.sql is None and transform.python is not None:
        return Problem(transform.python.file, 0, f"{transform.python.function}: {said}")
    return _problem_of_query(pipeline, 1, said)


def _problem_of_query(pipeline: Pipeline, line: int, said: str) -> Problem:
    """Locate a problem; `line` is counted from 1, in the text without its stripped leading lines."""
    transform = pipeline.transform
    text = transform.sql or ""
    below = line - 1 + text[: len(text) - len(text.lstrip())].count("\n")
    if transform.sql_file is not None:
        return Problem(transform.sql_file, 1 + below, said)
    return pipeline.problem("transform.sql", said, below=below)


def row_problem(pipeline: Pipeline, message: str, said: str) -> Problem | None:
    """Locate what failed on a row, if it is the user's code and Spark's `message` shows it; `said` is its short
    form.
    """
    folder = pipeline.folder.resolve()
    frames = [found for found in _FRAME.finditer(message) if Path(found["file"]).resolve().is_relative_to(folder)]
    if frames:
        return Problem(Path(frames[-1]["file"]), int(frames[-1]["line"]), said)
    texts = expression_texts(pipeline)
    if _NO_TOPIC in said:
        path = next((path for path in texts if path.endswith(".topic_from")), None)
        return None if path is None else pipeline.problem(path, said)
    fragment = _SQL_FRAGMENT.search(message)
    if fragment is None:
        return None
    shown, line = fragment["text"].strip().strip("."), int(fragment["line"])
    if shown in (pipeline.transform.sql or ""):
        return _problem_of_query(pipeline, line, said)
    path = next((path for path, text in texts.items() if shown in text), None)
    return None if path is None else pipeline.problem(path, said, below=line - 1)


def expression_texts(pipeline: Pipeline) -> dict[str, str]:
    """Return the expressions of the file, by the paths of their keys."""
    texts = {f"expectations[{number}].check": each.check for number, each in enumerate(pipeline.expectations)}
    for sink in pipeline.sinks:
        if isinstance(sink, TopicSink):
            given = {key: getattr(sink, key) for key in ("key", "value", "headers", "partition", "topic_from")}
            texts |= {f"{sink.name}.{key}": text for key, text in given.items() if text is not None}
        elif isinstance(sink, ParquetSinkDefinition | DeltaSinkDefinition):
            texts[f"{sink.name}.partition_by"] = ",".join(sink.partition_by)
    return texts


def expression_problem(pipeline: Pipeline, path: str, error: Exception) -> Problem:
    """Return the problem of an expression that Spark refuses."""
    return pipeline.problem(path, _short(str(error)))


def call(function: PythonFunction, frames: list["DataFrame"]) -> "DataFrame":
    """Return the result of the user's function; its exceptions are reported with the line of its file."""
    from pyspark.sql import DataFrame

    module = _load(function)
    try:
        result: Any = getattr(module, function.function)(*frames)
    except Exception as error:
        raise DefinitionError([_python_problem(function, error)]) from error
    if not isinstance(result, DataFrame):
        text = f"{function.function} returned a {type(result).__name__}; it must return a DataFrame"
        raise DefinitionError([Problem(function.file, 0, text)])
    return result


def _load(function: PythonFunction) -> ModuleType:
    """Load the user's module; its functions are pickled by value, because executors cannot import it."""
    from pyspark import cloudpickle

    name = f"headrace_pipeline_{function.file.stem}"
    spec = importlib.util.spec_from_file_location(name, function.file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(function.file.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise DefinitionError([_python_problem(function, error)]) from error
    finally:
        sys.path.remove(str(function.file.parent))
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def _python_problem(function: PythonFunction, error: Exception) -> Problem:
    file = function.file.resolve()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).resolve() == file]
    line = (frames[-1].lineno or 0) if frames else 0
    said = str(error).partition("\n")[0]
    return Problem(function.file, line, f"{function.function} raised {type(error).__name__}: {said}")

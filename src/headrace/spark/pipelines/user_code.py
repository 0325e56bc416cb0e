"""The user's own SQL and Python in a query: run here, with errors that name the file and line they come from."""

import importlib.util
import re
import sys
import traceback
from types import ModuleType
from typing import TYPE_CHECKING, Any

from headrace.spark.pipelines.definition import Pipeline, PythonFunction
from headrace.spark.pipelines.problems import DefinitionError, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SQL_LINE = re.compile(r"line (\d+)")
_SQL_ECHO = re.compile(r"\n== SQL.*", re.DOTALL)
_ERROR_CLASS = re.compile(r"^\[([A-Z_.0-9]+)\] ")
_PLAN_ECHO = re.compile(r";?\n['+:~ A-Z].*", re.DOTALL)


def query(spark: "SparkSession", pipeline: Pipeline) -> "DataFrame":
    """The result of the transform's SQL over the views."""
    from pyspark.errors import AnalysisException, ParseException

    assert pipeline.transform.sql is not None
    try:
        return spark.sql(pipeline.transform.sql.strip().rstrip(";"))
    except (ParseException, AnalysisException) as error:
        raise DefinitionError([_sql_problem(pipeline, str(error))]) from None


def _sql_problem(pipeline: Pipeline, message: str) -> Problem:
    transform = pipeline.transform
    # The line is counted in the text without the lines that were stripped off its beginning.
    text = transform.sql or ""
    skipped = text[: len(text) - len(text.lstrip())].count("\n")
    found = _SQL_LINE.search(message)
    line = (int(found[1]) - 1 if found else 0) + skipped
    said = _SQL_ECHO.sub("", message).strip()
    said = " ".join(_PLAN_ECHO.sub("", _ERROR_CLASS.sub("", said)).split())
    said = re.sub(r" SQLSTATE: \w+( \(line .*)?| \(line \d+, pos \d+\)", "", said)
    if transform.sql_file is not None:
        return Problem(transform.sql_file, 1 + line, said)
    return Problem(pipeline.file, pipeline.line_of("transform.sql") + line, f"transform.sql: {said}")


def expression_problem(pipeline: Pipeline, path: str, error: Exception) -> Problem:
    """For an expression of the file that Spark does not take."""
    said = _SQL_ECHO.sub("", str(error)).strip()
    said = " ".join(_PLAN_ECHO.sub("", _ERROR_CLASS.sub("", said)).split())
    return Problem(pipeline.file, pipeline.line_of(path), f"{path}: {re.sub(r' SQLSTATE: .*', '', said)}")


def call(function: PythonFunction, frames: list["DataFrame"]) -> "DataFrame":
    """The result of the user's function; what it raises is told with the line of its file."""
    from pyspark.sql import DataFrame

    module = _load(function)
    try:
        result: Any = getattr(module, function.function)(*frames)
    except Exception as error:
        raise DefinitionError([_python_problem(function, error)]) from error
    if not isinstance(result, DataFrame):
        text = f"{function.function} gave a {type(result).__name__}: it must return a DataFrame"
        raise DefinitionError([Problem(function.file, 0, text)])
    return result


def _load(function: PythonFunction) -> ModuleType:
    """The user's module, whose functions travel to executors as they are: those cannot import it."""
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
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(function.file)]
    line = (frames[-1].lineno or 0) if frames else 0
    said = str(error).partition("\n")[0]
    return Problem(function.file, line, f"{function.function} raised {type(error).__name__}: {said}")

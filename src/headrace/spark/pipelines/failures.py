"""Extract the reason from a failed query: the one relevant line of Spark's long message, and whether a retry can
help.
"""

import re
from typing import NamedTuple

from headrace.spark.pipelines.definition import Pipeline
from headrace.spark.pipelines.micro_batch_writer import StoppedAtBoundary
from headrace.spark.pipelines.user_code import row_problem

_ANNOUNCED = re.compile(r"terminated with exception: (?P<rest>.*)", re.DOTALL)
_PYTHON_ERROR = re.compile(
    r"^(?:[\w.]+\.)?(?P<kind>[A-Z]\w*(?:Error|Exception|Full|Fenced|Closed|Rows|Loss|Lost|Fit)?): (?P<said>.+)$",
    re.MULTILINE,
)
_PLAN = "\n=== Streaming Query ==="
"""After an error Spark describes the query, and its plan also contains our own messages."""
_OWN_WORDS = re.compile(r'(?:\[USER_RAISED_EXCEPTION\] )?(?P<said>(?:bad record in topic|expectation ")[^\n]*)')
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_ERROR_CLASS = re.compile(r"\[[A-Z_.0-9]+\] ")
"""Spark's own errors begin with it; it is more specific than the name of their Java class."""
_DATA_STATES = re.compile(r"SQLSTATE: (?:22\w{3}|42(?!P01)\w{3}|P0001)\b")
"""A value that an expression cannot process, a missing column or type, and errors that the query itself raises. A
missing table (42P01) may return.
"""
FINAL_KINDS = frozenset(
    (
        "DataLost", "OptionError", "CheckpointError", "RowError", "RowTooLarge", "BadRecord", "TooManyRows",
        "SameBatchTwice", "SameLaneTwice", "LanesMixed", "ParseException", "WrittenByEarlierVersion", "RowsDoNotFit",
    )
)  # fmt: skip
"""Error classes that the same data and definition cause again."""
_NOISE = re.compile(r" SQLSTATE: \w+.*|^\[[A-Z_.0-9]+\] ")
LENGTH_MAX = 2_000


class QueryFailure(NamedTuple):
    said: str
    is_final: bool
    """The failure would repeat: the definition, the data or the disk must change first."""


def is_stop(message: str) -> bool:
    return StoppedAtBoundary.__name__ in message


def failure_of(message: str, pipeline: Pipeline) -> QueryFailure:
    """Return the reason of a streaming query's exception, and the place in the user's files that failed."""
    message = message.partition(_PLAN)[0]
    own = _OWN_WORDS.search(message)
    if own is not None:
        return QueryFailure(_clean(own["said"]), is_final=True)
    if _NO_SPACE.search(message):
        return QueryFailure("the disk is full: free some space, then run it again; nothing is lost", is_final=True)
    errors = [found for found in _PYTHON_ERROR.finditer(message) if found["kind"] not in ("Traceback", "Caused")]
    if errors:
        kind, text = errors[-1]["kind"], errors[-1]["said"]
        said = _clean(text if _ERROR_CLASS.match(text) else f"{kind}: {text}")
    else:
        announced = _ANNOUNCED.search(message)
        said = _clean((announced["rest"] if announced else message).strip().partition("\n")[0])
    problem = row_problem(pipeline, message, said)
    is_final = any(found["kind"] in FINAL_KINDS for found in errors) or bool(_DATA_STATES.search(message))
    return QueryFailure(said if problem is None else str(problem), is_final=is_final)


def _clean(text: str) -> str:
    return _NOISE.sub("", text).strip()[:LENGTH_MAX]

"""Why a query ended: the one line of Spark's long answer that a person needs, and whether trying again can help."""

import re
from typing import NamedTuple

from headrace.spark.pipelines.writing import StoppedAtBoundary

_ANNOUNCED = re.compile(r"terminated with exception: (?P<rest>.*)", re.DOTALL)
_PYTHON_ERROR = re.compile(
    r"^(?:[\w.]+\.)?(?P<kind>[A-Z]\w*(?:Error|Exception|Full|Fenced|Closed|Rows|Loss|Lost)?): (?P<said>.+)$",
    re.MULTILINE,
)
_PLAN = "\n=== Streaming Query ==="
"""Behind an error Spark describes the query, and our own words stand in its plan too."""
_OWN_WORDS = re.compile(r'(?:\[USER_RAISED_EXCEPTION\] )?(?P<said>(?:bad record in topic|expectation ")[^\n]*)')
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_NOISE = re.compile(r" SQLSTATE: \w+.*|^\[[A-Z_.0-9]+\] ")
LENGTH_MAX = 2_000


class Failure(NamedTuple):
    said: str
    is_final: bool
    """The same would happen again: the definition, the data or the disk must change first."""


def is_stop(message: str) -> bool:
    return StoppedAtBoundary.__name__ in message


def failure_of(message: str) -> Failure:
    """What a streaming query's exception says."""
    message = message.partition(_PLAN)[0]
    own = _OWN_WORDS.search(message)
    if own is not None:
        return Failure(_clean(own["said"]), is_final=True)
    if _NO_SPACE.search(message):
        return Failure("the disk is full: free some space, then run it again; nothing is lost", is_final=True)
    errors = [found for found in _PYTHON_ERROR.finditer(message) if found["kind"] not in ("Traceback", "Caused")]
    if errors:
        return Failure(_clean(f"{errors[-1]['kind']}: {errors[-1]['said']}"), is_final=False)
    announced = _ANNOUNCED.search(message)
    return Failure(_clean((announced["rest"] if announced else message).strip().partition("\n")[0]), is_final=False)


def _clean(text: str) -> str:
    return _NOISE.sub("", text).strip()[:LENGTH_MAX]

"""Detect whether a query keeps state, from the plan that Spark prints."""

import re
from typing import NamedTuple

_STATEFUL = re.compile(r"Aggregate|Deduplicate\w*|Distinct|GlobalLimit|(?:FlatMap|Map)Groups\w*|\w*WithState\w*")
_NODE = re.compile(r"^(?P<indent>[\s:]*(?:[+:]- )?)[~']*(?P<name>\w+)")


class _Line(NamedTuple):
    depth: int
    name: str


def stateful_operators(plan: str) -> tuple[str, ...]:
    """Return the names of stateful operators, in the order of the plan: those above streams, and joins of two
    streams.
    """
    lines = [_line(text) for text in plan.splitlines() if text.strip()]
    found = []
    for number, line in enumerate(lines):
        if _STATEFUL.fullmatch(line.name) or line.name == "Join":
            streams = _streaming_inputs(lines, number)
            if streams >= (2 if line.name == "Join" else 1):
                found.append(line.name)
    return tuple(found)


def _line(text: str) -> _Line:
    match = _NODE.match(text)
    return _Line(0, "") if match is None else _Line(len(match["indent"]), match["name"])


def _streaming_inputs(lines: list[_Line], number: int) -> int:
    """Count the inputs of an operator that contain a stream."""
    inputs: list[bool] = []
    first_depth: int | None = None
    for line in lines[number + 1 :]:
        if line.depth <= lines[number].depth:
            break
        first_depth = line.depth if first_depth is None else first_depth
        if line.depth == first_depth:
            inputs.append(False)
        inputs[-1] = inputs[-1] or line.name.startswith("Streaming")
    return sum(inputs)

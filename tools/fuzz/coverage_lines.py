"""Lines that inputs reach: to keep only inputs that add something, and to say how much of a module a corpus covers.

    python -m tools.fuzz.coverage_lines

prints the line coverage of every source file by the corpora of the targets that read with it (needs coverage.py).
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from tools.fuzz import corpus
from tools.fuzz.target import Target

SOURCE_ROOT = Path("src") / "headrace"
IMPORTING = "importing"

Step = tuple[str, int, int]
"""A file, and two lines of which the second ran after the first."""


def smallest_set(target: Target, inputs: Iterable[bytes]) -> list[bytes]:
    """Short inputs that together take every step in the target's sources that all of them take."""
    taken: set[Step] = set()
    kept = []
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        new = _steps_of(target, data) - taken
        if new:
            taken |= new
            kept.append(data)
    return kept


def _steps_of(target: Target, data: bytes) -> set[Step]:
    steps: set[Step] = set()
    endings = tuple(f"/headrace/{source}" for source in target.sources)

    def enter(frame: FrameType, _event: str, _argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.endswith(endings):
            return None
        before = frame.f_lineno

        def step(frame: FrameType, event: str, _argument: Any) -> Any:
            nonlocal before
            if event == "line":
                steps.add((file, before, frame.f_lineno))
                before = frame.f_lineno
            return step

        return step

    sys.settrace(enter)
    try:
        target.read(data)
    except Exception:
        steps.add(("finding", 0, len(data)))
    finally:
        sys.settrace(None)
    return steps


def measure() -> dict[str, dict[str, tuple[int, int, list[int]]]]:
    """By source file and target: (lines reached, lines there are, those missed); `all` is of all targets together.

    Lines that run at the import count as reached. Must run in a process that has not imported headrace yet.
    """
    import coverage

    assert "headrace.wire" not in sys.modules, "measuring begins before the first import"
    recorder = coverage.Coverage(data_file=None, config_file=False, include=["*/src/headrace/*"])
    recorder.start()
    recorder.switch_context(IMPORTING)
    from tools.fuzz.catalog import targets

    for target in targets().values():
        for seed in target.seeds()[:1]:
            target.read(seed)
    for target in targets().values():
        recorder.switch_context(target.name)
        for data in (*corpus.load(corpus.CORPUS, target.name), *corpus.load(corpus.FINDINGS, target.name)):
            target.read(data)
    recorder.stop()
    data_found = recorder.get_data()
    report: dict[str, dict[str, tuple[int, int, list[int]]]] = {}
    for path in sorted(data_found.measured_files()):
        source = path.partition("/src/headrace/")[2]
        readers = [target.name for target in targets().values() if source in target.sources]
        if readers:
            _, statements, _, _, _ = recorder.analysis2(path)
            report[source] = {
                reader: _share(data_found, path, statements, contexts)
                for reader, contexts in (*((name, [name]) for name in readers), ("all", readers))
            }
    return report


def _share(data_found: Any, path: str, statements: list[int], contexts: list[str]) -> tuple[int, int, list[int]]:
    data_found.set_query_contexts([f"^{name}$" for name in (IMPORTING, *contexts)])
    reached = set(data_found.lines(path) or ())
    missed = [line for line in statements if line not in reached]
    return len(statements) - len(missed), len(statements), missed


def main() -> int:
    for source, shares in measure().items():
        reached, there, missed = shares["all"]
        inputs = sum(len(corpus.load(corpus.CORPUS, name)) for name in shares if name != "all")
        print(f"{source:52} {reached / there:7.1%} of {there:4} lines by {inputs:4} inputs  missed {missed[:12]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

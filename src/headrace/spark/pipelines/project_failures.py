"""Extract the reason of a failed project run from Spark's output, with its file and line."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from headrace.spark.pipelines.problems import Problem
from headrace.spark.pipelines.projects import Project
from headrace.spark.pipelines.sql_text import statement_lines

_FLOW_FAILED = re.compile(r"(?:Failed to resolve flow: |Flow )'(?P<flow>[^']+)'(?: has FAILED)?\.?$")
_ERROR = re.compile(r"^Error: (?P<said>.*)")
_SQL_FILE = re.compile(r"Registering SQL file (?P<file>.*)\.\.\.$")
_FRAME = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+)')
_SQL_LINE = re.compile(r"\(?line (?P<line>\d+),? pos \d+\)?")
_STREAM = re.compile(r".*terminated with exception: ")
_NOISE = re.compile(r"\[[A-Z_.0-9]+\] | ?SQLSTATE: \w+")
_SQL_ECHO = "== SQL =="
_CARETS = re.compile(r"-*\^\^\^")


def failure_reason(project: Project, lines: Sequence[str]) -> str:
    """Extract the reason from the output of a failed run."""
    problem = _of_flow(project, lines) or _of_definitions(project, lines)
    return str(problem) if problem is not None else _last_error(lines)


def _of_flow(project: Project, lines: Sequence[str]) -> Problem | None:
    """Report the last failed flow by the place of its definition."""
    for number in range(len(lines) - 2, -1, -1):
        found, error = _FLOW_FAILED.search(lines[number]), _ERROR.match(lines[number + 1])
        if found is None or error is None:
            continue
        name = found["flow"].rpartition(".")[2].strip("`")
        text = f'"{name}": {_clean(_STREAM.sub("", error["said"]))}'
        place = project.places.get(name)
        if place is None:
            return Problem(project.file, 0, text)
        in_sql = _SQL_LINE.search(error["said"]) if place.file.suffix == ".sql" else None
        line = place.line if in_sql is None else _file_line(place.file, place.line, int(in_sql["line"]))
        return Problem(place.file, line, text)
    return None


def _of_definitions(project: Project, lines: Sequence[str]) -> Problem | None:
    """Locate an error while the files were read: in the innermost line of the project, or in the SQL file read last."""
    text = _clean(_last_error(lines))
    folder = project.folder.resolve()
    frames = [found for line in lines if (found := _FRAME.match(line)) and Path(found["file"]).is_relative_to(folder)]
    if frames:
        return Problem(Path(frames[-1]["file"]), int(frames[-1]["line"]), text)
    files = [found["file"] for line in lines if (found := _SQL_FILE.search(line))]
    in_sql = next((found for line in lines if (found := _SQL_LINE.search(line))), None)
    if not files or in_sql is None:
        return None
    file = Path(files[-1])
    return Problem(file, _echoed_line(file, int(in_sql["line"]), list(_echo(lines))), text)


def _last_error(lines: Sequence[str]) -> str:
    """Return the error at the end of a traceback; it may be in the line below its name."""
    ends = [number for number, line in enumerate(lines) if re.match(r"^[\w.]+(Error|Exception)?: ?", line)]
    if not ends:
        return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
    name, _, text = lines[ends[-1]].partition(":")
    below = next((line for line in lines[ends[-1] + 1 :] if line.strip()), "")
    return f"{name.rpartition('.')[2]}: {text.strip() or below.strip()}"


def _clean(text: str) -> str:
    return " ".join(_NOISE.sub("", _SQL_LINE.sub("", text)).split()).rstrip("; ")


def _echo(lines: Sequence[str]) -> Iterator[str]:
    """Yield the statement as Spark repeats it."""
    is_in = False
    for line in lines:
        if is_in and _CARETS.match(line):
            return
        if is_in:
            yield line
        is_in = is_in or line.startswith(_SQL_ECHO)


def _file_line(file: Path, created_at: int, line: int) -> int:
    """Return the line in the file; Spark counts from the end of the previous statement."""
    begins = [begin for begin in statement_lines(_text(file)) if begin + 1 <= created_at]
    return (begins[-1] if begins else 0) + line


def _echoed_line(file: Path, line: int, echo: list[str]) -> int:
    """Find the line of the statement by its text."""
    text = _text(file).splitlines()
    wrong = echo[line - 1].strip() if line <= len(echo) else ""
    for begin in statement_lines(_text(file)):
        at = begin + line
        if at <= len(text) and wrong and text[at - 1].strip().endswith(wrong):
            return at
    return line


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""

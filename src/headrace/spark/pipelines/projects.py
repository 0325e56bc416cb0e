"""Projects of Spark's declarative pipelines: read their file and check it and the files it names.

Spark reads the file itself when it runs the project; it is read here to report mistakes with their line, without Spark,
and to map a failure of Spark to the line of the table that it concerns.
"""

import ast
import glob
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from yaml import ScalarNode

from headrace.spark.pipelines.nodes import YamlSection, parse, read_text
from headrace.spark.pipelines.problems import DefinitionError, Findings, Place, Problem
from headrace.spark.pipelines.sql_text import check_script, created_things

PROJECT_FILES = ("spark-pipeline.yml", "spark-pipeline.yaml")
LIBRARIES_MAX = 1_000
FILES_MAX = 10_000
STATE_FOLDER = ".headrace"
"""In the folder of the project: the catalog, the lock and the log of its runs."""
TABLES_FOLDER = "spark-warehouse"
"""In the folder of the project: the tables, under Spark's name for the folder."""

_RECURSIVE = "/**"
_DATASETS, _FLOWS = {"table", "materialized_view", "temporary_view"}, {"append_flow"}
"""Decorators of `pyspark.pipelines`."""
_CREATING = {"create_streaming_table", "create_sink", "create_auto_cdc_flow"}
_FIXED_SETTINGS = {
    "spark.master": "set --master on the command line",
    "spark.remote": "set --master on the command line",
    "spark.plugins": "Spark cannot change it once it runs",
    "spark.sql.catalogImplementation": "Spark cannot change it once it runs; the catalog is kept in the project",
    "spark.sql.warehouse.dir": f"Spark cannot change it once it runs; tables are in {TABLES_FOLDER}",
}


class Definition(NamedTuple):
    name: str
    line: int
    is_dataset: bool
    """A table or a view; flows and sinks have their own names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    file: Path
    name: str
    storage: str
    """The folder of Spark's checkpoints, as a URI."""
    files: tuple[Path, ...]
    places: Mapping[str, Place]
    """Where tables, views, flows and sinks are defined, by their names."""

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def state(self) -> Path:
        return self.folder / STATE_FOLDER


def is_project(file: Path) -> bool:
    return file.name in PROJECT_FILES


def read_project(file: Path) -> Project:
    """Read a project; DefinitionError lists all mistakes of the file and of the files it names."""
    findings = Findings(file)
    root = YamlSection(parse(file), "", findings, {})
    name, storage = root.text("name"), root.parsed("storage", lambda text: _storage(text, file.parent))
    for key, example in (("name", "name: shop"), ("storage", f"storage: {_storage_example(file.parent)}")):
        if key not in root:
            root.missing(key, example)
    for key in ("catalog", "database", "schema"):
        root.text(key)
    _check_configuration(root)
    files = _files(root, file.parent)
    root.finish()
    places = _places(files, findings)
    findings.raise_if_any()
    return Project(file=file, name=name or "", storage=storage or "", files=files, places=places)


def _places(files: tuple[Path, ...], findings: Findings) -> dict[str, Place]:
    places: dict[str, Place] = {}
    datasets: dict[str, Place] = {}
    for file in files:
        for found in _definitions(file, findings):
            place = Place(file, found.line)
            places.setdefault(found.name.rpartition(".")[2], place)
            known = datasets.setdefault(found.name, place) if found.is_dataset else place
            if known != place:
                where = f"{known.file.name}:{known.line}"
                text = f'"{found.name}" is already defined in {where}: rename one of them'
                findings.problems.append(Problem(file, found.line, text))
    return places


def _storage_example(folder: Path) -> str:
    return f"file://{(folder / 'storage').resolve()}"


def _storage(text: str, folder: Path) -> str:
    if "://" not in text and not text.startswith("file:/"):
        raise ValueError(f'Spark needs a URI here, not "{text}": write {_storage_example(folder)}')
    return text


def _check_configuration(root: YamlSection) -> None:
    """Check that values are strings: an unquoted number or boolean ends Spark's run."""
    section = root.section("configuration")
    if section is None:
        return
    for key, value in section.node.value:
        name = str(key.value)
        if name in _FIXED_SETTINGS:
            section.wrong(name, _FIXED_SETTINGS[name])
        elif isinstance(value, ScalarNode) and value.tag != "tag:yaml.org,2002:str":
            section.wrong(name, f'Spark needs a string here: write "{value.value}" with quotes')


def _files(root: YamlSection, folder: Path) -> tuple[Path, ...]:
    """Return the files that the project file names, as Spark finds them."""
    found: dict[Path, None] = {}
    for library in root.sections("libraries", most=LIBRARIES_MAX):
        section = library.section("glob")
        library.finish()
        if section is None:
            library.missing("glob", "glob: {include: transformations/**}")
            continue
        pattern = section.text("include")
        section.finish()
        if pattern is None:
            section.missing("include", "include: transformations/**")
            continue
        bare = pattern.removesuffix(_RECURSIVE)
        if glob.has_magic(bare):
            section.wrong(
                "include", f'"{pattern}" is not supported by Spark: name a file, or a whole folder as folder/**'
            )
            continue
        matched = [path for path in _matched(folder, pattern, bare) if "__pycache__" not in path.parts][:FILES_MAX]
        if not matched:
            section.wrong("include", f'"{pattern}" matches no file')
        for path in matched:
            if path.suffix not in (".py", ".sql"):
                section.wrong(
                    "include",
                    f"{path.relative_to(folder)} is neither .py nor .sql, which are the only files that Spark supports",
                )
            found[path] = None
    return tuple(path for path in found if path.suffix in (".py", ".sql"))


def _matched(folder: Path, pattern: str, bare: str) -> Iterator[Path]:
    if pattern != bare:
        return (path for path in sorted((folder / bare).rglob("*")) if path.is_file())
    return iter([folder / bare] if (folder / bare).is_file() else [])


def _definitions(file: Path, findings: Findings) -> Iterator[Definition]:
    """Yield the definitions of a file; its mistakes go to the findings."""
    try:
        text = read_text(file)
    except DefinitionError as error:
        findings.problems.extend(error.problems)
        return
    if file.suffix == ".sql":
        for mistake in check_script(text):
            findings.problems.append(Problem(file, mistake.line + 1, mistake.text))
        yield from (Definition(name, line + 1, kind != "flow") for kind, name, line in created_things(text))
        return
    try:
        tree = ast.parse(text, filename=str(file))
    except SyntaxError as error:
        findings.problems.append(Problem(file, error.lineno or 0, f"this is not Python: {error.msg}"))
        return
    except ValueError as error:
        findings.problems.append(Problem(file, 0, f"this is not Python: {error}"))
        return
    yield from _python_definitions(tree)


def _python_definitions(tree: ast.Module) -> Iterator[Definition]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                called = _called(decorator)
                if called in _DATASETS or called in _FLOWS:
                    yield Definition(_given_name(decorator) or node.name, node.lineno, called in _DATASETS)
        elif isinstance(node, ast.Call) and _called(node) in _CREATING:
            name = _given_name(node) or (_text(node.args[0]) if node.args else None)
            if name is not None:
                yield Definition(name, node.lineno, _called(node) == "create_streaming_table")


def _called(node: ast.expr) -> str:
    """Return the last part of a called name: `table` of `dp.table(...)`."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _given_name(node: ast.expr) -> str | None:
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return next((_text(each.value) for each in keywords if each.arg == "name"), None)


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None

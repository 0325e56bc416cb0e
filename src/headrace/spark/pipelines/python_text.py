"""Check that a Python file has the function a pipeline names, without running the file or Spark."""

import ast
from importlib.util import find_spec
from pathlib import Path

from headrace.model.nearest_names import guess
from headrace.spark.pipelines.definition import PythonFunction
from headrace.spark.pipelines.nodes import read_text
from headrace.spark.pipelines.problems import Problem


def parse_reference(text: str, folder: Path) -> PythonFunction:
    """Parse `file.py:function`; ValueError says how to write it."""
    file, colon, function = text.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        raise ValueError(f'"{text}" does not name a function: write `transform.py:function`')
    return PythonFunction(folder / file, function)


def check_function(wanted: PythonFunction, arguments: int) -> list[Problem]:
    """Report mistakes of the file: its syntax, modules that are not installed, the function and its parameters."""
    file = wanted.file
    try:
        tree = ast.parse(read_text(file), filename=str(file))
    except SyntaxError as error:
        return [Problem(file, error.lineno or 0, f"this is not Python: {error.msg}")]
    except ValueError as error:
        return [Problem(file, 0, f"this is not Python: {error}")]
    return [*_missing_modules(tree, file), *_wrong_function(tree, wanted, arguments)]


def _missing_modules(tree: ast.Module, file: Path) -> list[Problem]:
    problems = []
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0:
            names = [statement.module or ""]
        else:
            continue
        for name in {name.partition(".")[0] for name in names}:
            beside = (file.parent / f"{name}.py", file.parent / name)
            if find_spec(name) is None and not any(path.exists() for path in beside):
                text = f'module "{name}" is not installed here: install it, or put {name}.py beside {file.name}'
                problems.append(Problem(file, statement.lineno, text))
    return problems


def _wrong_function(tree: ast.Module, wanted: PythonFunction, arguments: int) -> list[Problem]:
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    found = functions.get(wanted.function)
    if found is None:
        others = guess(wanted.function, functions) if functions else "the file has none"
        return [Problem(wanted.file, 0, f'the function "{wanted.function}" does not exist: {others}')]
    takes = [*found.args.posonlyargs, *found.args.args]
    needs = len(takes) - len(found.args.defaults)
    if found.args.vararg is None and not needs <= arguments <= len(takes):
        text = f'"{wanted.function}" must take {arguments} DataFrame{"s" if arguments > 1 else ""}, one per source'
        return [Problem(wanted.file, found.lineno, text)]
    return []

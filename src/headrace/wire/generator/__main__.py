"""Write the codec modules from the schema tables, or with --check list those that are out of date."""

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from headrace.wire import messages, schemas
from headrace.wire.generator.modules import module_text

SCHEMA_FOLDER = Path(schemas.__file__).parent
MESSAGE_FOLDER = Path(messages.__file__).parent


def tables() -> list[str]:
    """Return the names of the schema modules, one per API."""
    return sorted(path.stem for path in SCHEMA_FOLDER.glob("*.py") if path.stem not in ("__init__", "notation"))


def generated() -> Iterator[tuple[Path, str]]:
    """Yield every codec module: its path and its text."""
    for name in tables():
        table = import_module(f"{schemas.__name__}.{name}")
        yield MESSAGE_FOLDER / f"{name}.py", module_text(table.REQUEST, table.RESPONSE, f"wire/schemas/{name}.py")


def stale() -> list[Path]:
    """Return modules that differ from their tables, are missing, or have no table."""
    expected = {MESSAGE_FOLDER / "__init__.py"}
    differing = []
    for path, text in generated():
        expected.add(path)
        if not path.exists() or path.read_text() != text:
            differing.append(path)
    return differing + [path for path in sorted(MESSAGE_FOLDER.glob("*.py")) if path not in expected]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m headrace.wire.generator", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a module is out of date")
    if parser.parse_args().check:
        for path in stale():
            print(f"{path.name} does not match its table; run python -m headrace.wire.generator")
        return 1 if stale() else 0
    for path in stale():
        path.unlink(missing_ok=True)
    for path, text in generated():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

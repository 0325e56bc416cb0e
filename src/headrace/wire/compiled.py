"""Load the compiled helpers, and report which of them this installation has.

An installation without them does the same work in Python; `tools/build_native.py` builds them.
"""

from functools import cache
from importlib import resources
from typing import Any, NamedTuple

COLUMN_LIBRARY = "_places.so"
"""Beside `headrace.wire.columns`."""

INSTALL = "install a C compiler and the headers of Python (gcc, python3-dev), then install Headrace again from source"


class CompiledHelper(NamedTuple):
    name: str
    work: str
    """Its purpose, in a user's words."""
    in_use: bool


def compiled_helpers() -> tuple[CompiledHelper, ...]:
    """Return every helper, and whether this process uses it or does its work in Python."""
    return (
        CompiledHelper("requests", "reads produce requests and checks their records", has_request_helper()),
        CompiledHelper("columns", "decodes records for Spark and Arrow", column_library() is not None),
    )


@cache
def has_request_helper() -> bool:
    try:
        import headrace.wire._compiled  # noqa: F401
    except ImportError:
        return False
    return True


@cache
def column_library() -> Any:
    """Load the library of `places.c`; None if it was not built or is for another kind of machine."""
    import ctypes  # imported here, because only readers of columns need it

    library = resources.files("headrace.wire").joinpath("columns", COLUMN_LIBRARY)
    if not library.is_file():
        return None
    try:
        return ctypes.CDLL(str(library))
    except OSError:
        return None

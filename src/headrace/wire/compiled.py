"""The compiled helpers: loading them, and telling users which of them this installation has.

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
    """What it does, in the words of a user."""
    in_use: bool


def compiled_helpers() -> tuple[CompiledHelper, ...]:
    """Every helper there is, and whether this process uses it or does its work in Python."""
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
    """The library of `places.c`, or None where it was not built or belongs to another kind of machine."""
    import ctypes  # here, because only those who read columns need it

    library = resources.files("headrace.wire").joinpath("columns", COLUMN_LIBRARY)
    if not library.is_file():
        return None
    try:
        return ctypes.CDLL(str(library))
    except OSError:
        return None

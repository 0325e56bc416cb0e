"""Compile Headrace's helper beside its source: `python tools/build_native.py`. The package works without it.

Standard library only: the hook of the build (tools/native_hook.py) calls it when HEADRACE_NATIVE=1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "src/headrace/wire/columns"
SOURCE = ROOT / FOLDER / "places.c"
LIBRARY = ROOT / FOLDER / "_places.so"
FLAGS = ("-O3", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


def compiler() -> str | None:
    """The C compiler to use: $CC, or cc where there is one."""
    return shutil.which(os.environ.get("CC", "cc"))


def build(library: Path = LIBRARY) -> Path:
    """Compile into this file; a reader never sees half of it."""
    chosen = compiler()
    if chosen is None:
        raise SystemExit("HEADRACE_NATIVE=1 needs a C compiler: install one, or leave the variable out")
    fresh = library.with_suffix(f".{os.getpid()}")
    subprocess.run([chosen, *FLAGS, str(SOURCE), "-o", str(fresh)], check=True)
    return fresh.replace(library)


if __name__ == "__main__":
    print(build().relative_to(ROOT))

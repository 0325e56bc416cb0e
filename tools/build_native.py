"""Compile Headrace's helpers beside their sources: `python tools/build_native.py`. The package works without them.

Standard library only: the hook of the build (tools/native_hook.py) calls it when HEADRACE_NATIVE=1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIRE = ROOT / "src/headrace/wire"
PLACES = WIRE / "columns/places.c"
REPEATS = WIRE / "repeats.c"
LIBRARIES = {
    PLACES: PLACES.with_name("_places.so"),
    REPEATS: REPEATS.with_name("_repeats" + sysconfig.get_config_var("EXT_SUFFIX")),
}
"""Where each source goes: a plain library, and a module of this Python."""
FLAGS = ("-O3", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
HEADERS = Path(sysconfig.get_paths()["include"])


def compiler() -> str | None:
    """The C compiler to use: $CC, or cc where there is one."""
    return shutil.which(os.environ.get("CC", "cc"))


def build(source: Path, library: Path | None = None) -> Path:
    """Compile one source into this file; a reader never sees half of it."""
    chosen = compiler()
    if chosen is None:
        raise SystemExit("HEADRACE_NATIVE=1 needs a C compiler: install one, or leave the variable out")
    library = LIBRARIES[source] if library is None else library
    fresh = library.with_suffix(f".{os.getpid()}")
    subprocess.run([chosen, *FLAGS, f"-I{HEADERS}", str(source), "-o", str(fresh)], check=True)
    return fresh.replace(library)


def can_build_modules() -> bool:
    """Some systems have Python's headers in a package of their own."""
    return (HEADERS / "Python.h").is_file()


def build_all() -> list[Path]:
    """Everything that can be built here; what cannot is done in Python."""
    if can_build_modules():
        return [build(source) for source in LIBRARIES]
    print(f"{REPEATS.name} is left out: it needs Python's headers (python3-dev)")
    return [build(PLACES)]


if __name__ == "__main__":
    for built in build_all():
        print(built.relative_to(ROOT))

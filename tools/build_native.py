"""Compile Headrace's helpers beside their sources: `python tools/build_native.py`. The package works without them.

Standard library only: the build hook (tools/native_hook.py) runs this file in whatever environment pip builds in.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIRE = ROOT / "src/headrace/wire"
PLACES = WIRE / "columns/places.c"
REPEATS = WIRE / "repeats.c"
LIBRARIES = {
    PLACES: PLACES.with_name("_places.so"),
    REPEATS: REPEATS.with_name("_compiled" + sysconfig.get_config_var("EXT_SUFFIX")),
}
"""The file that each source becomes: a plain library, and a module of this Python."""
FLAGS = ("-O3", "-std=c11", "-Wall", "-Wextra", "-shared", "-fPIC")
SYSTEM_FLAGS = {"darwin": ("-undefined", "dynamic_lookup")}
"""Symbols of Python are found when the module is loaded; only macOS needs to be instructed to allow that."""
HEADERS = Path(sysconfig.get_paths()["include"])
COMPILE_SECONDS_MAX = 300


class CannotCompile(Exception):
    """A helper was not built; the message says why, and what to install."""


def compiler() -> list[str] | None:
    """The command of the C compiler: $CC, which may have arguments, or cc; None where there is none."""
    command = shlex.split(os.environ.get("CC", "")) or ["cc"]
    return command if shutil.which(command[0]) else None


def build(source: Path, library: Path | None = None, *flags: str) -> Path:
    """Compile one source into this file, which is replaced as a whole; `CannotCompile` where that fails."""
    command = compiler()
    if command is None:
        raise CannotCompile("no C compiler was found: install one (gcc), or name it in $CC")
    library = LIBRARIES[source] if library is None else library
    fresh = library.with_suffix(f".{os.getpid()}")
    system_flags = SYSTEM_FLAGS.get(sys.platform, ())
    try:
        subprocess.run(
            [*command, *FLAGS, *system_flags, *flags, f"-I{HEADERS}", str(source), "-o", str(fresh)],
            check=True,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_SECONDS_MAX,
        )
        return fresh.replace(library)
    except subprocess.CalledProcessError as failed:
        fresh.unlink(missing_ok=True)
        raise CannotCompile(_advice(source, failed.stderr)) from failed
    except (OSError, subprocess.TimeoutExpired) as failed:
        fresh.unlink(missing_ok=True)
        raise CannotCompile(f"{source.name}: {failed}") from failed


def _advice(source: Path, said: str) -> str:
    """Some systems have the headers of Python in a package of their own."""
    if "Python.h" in said and not can_build_modules():
        return f"{source.name} needs the headers of Python: install python3-dev"
    return f"{source.name} does not compile:\n{said}"


def can_build_modules() -> bool:
    return (HEADERS / "Python.h").is_file()


def build_all(folder: Path | None = None, *flags: str, tell: Callable[[str], object] = print) -> dict[Path, Path]:
    """Build every helper that can be built here, in this folder or beside its source: library by source.

    The others are named by `tell`; the package does in Python what they would have done.
    """
    built: dict[Path, Path] = {}
    for source, library in LIBRARIES.items():
        try:
            built[source] = build(source, None if folder is None else folder / library.name, *flags)
        except CannotCompile as reason:
            tell(f"without a compiled helper: {reason}")
    return built


if __name__ == "__main__":
    for found in build_all().values():
        print(found.relative_to(ROOT))

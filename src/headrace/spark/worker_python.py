"""The Python that Spark starts on this machine: this interpreter, with the installed pyspark.

Spark puts a zip of pyspark first on the path of its Python processes, in some cases two or three times, and a jar after
it. Python compiles imports from a zip again in every process, which takes half a second each, and up to the first batch
of a pipeline there are seven of them, one after the other. The installed package is the same, and it is compiled.
"""

import shlex
import sys
from pathlib import Path

from headrace.spark.scripts import places, written

_SCRIPT = """#!/bin/sh
# Starts Python without the zip of pyspark on its path: pyspark is installed beside it.
home={home}
kept=
set -f
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
        "$home"/python/lib/py*.zip | "$home"/jars/*.jar) ;;
        *) kept=$kept:$entry ;;
    esac
done
PYTHONPATH=${{kept#:}} exec {python} "$@"
"""


def worker_python(spark_home: Path) -> str:
    """Return the program for PYSPARK_PYTHON; this interpreter itself if there is no place for a script."""
    text = _SCRIPT.format(home=shlex.quote(str(spark_home)), python=shlex.quote(sys.executable))
    for script in _scripts():
        try:
            return str(written(script, text))
        except OSError:
            continue
    return sys.executable


def is_worker_python(program: str) -> bool:
    """Return whether it is the script for this interpreter, and so was not chosen by a user."""
    return Path(program) in _scripts()


def _scripts() -> list[Path]:
    return [folder / "bin" / "python" for folder in places("python", Path(sys.executable))]

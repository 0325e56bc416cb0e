"""The Python that Spark starts on this machine: this interpreter, which takes pyspark from where it is installed.

Spark puts a zip of pyspark before everything else on the path of its Python processes, some two and three times, and a
jar behind it. Python compiles what it imports from a zip in every process anew, which takes half a second each, and up
to the first batch of a pipeline there are seven of them, one after the other. The installed package is the same,
and it is compiled.
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
    """The program for PYSPARK_PYTHON; this interpreter as it is where there is no place for a script."""
    text = _SCRIPT.format(home=shlex.quote(str(spark_home)), python=shlex.quote(sys.executable))
    for script in _scripts():
        try:
            return str(written(script, text))
        except OSError:
            continue
    return sys.executable


def is_worker_python(program: str) -> bool:
    """Whether it is the script that stands for this interpreter, and so nothing that a user has chosen."""
    return Path(program) in _scripts()


def _scripts() -> list[Path]:
    return [folder / "bin" / "python" for folder in places("python", Path(sys.executable))]

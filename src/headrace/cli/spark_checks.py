"""Findings of `headrace doctor` about Spark: packages, Java, Python of the workers, compiled helper."""

import os
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from headrace.operations.findings import Finding, note, ok, problem, warning
from headrace.spark.versions import BELOW, SINCE

ABOUT = "spark"
INSTALL = "pip install 'headrace[spark]'"
VERSIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "pyspark": (SINCE, BELOW),
    "pyarrow": ((18,), (1000,)),
    "pandas": ((2, 2), (3,)),
    "numpy": ((1, 26), (1000,)),
}
"""The lowest version, and the first version that is too new."""


def check_spark() -> Iterator[Finding]:
    installed = {name: _installed(name) for name in VERSIONS}
    if installed["pyspark"] is None:
        yield note(ABOUT, "pyspark is not installed", f"to read and write topics with Spark: {INSTALL}")
        return
    yield from (package_finding(name, found) for name, found in installed.items())
    yield java_finding()
    yield from interpreter_findings(os.environ.get("PYSPARK_PYTHON"), sys.executable)
    yield helper_finding()


def package_finding(name: str, found: str | None) -> Finding:
    least, below = VERSIONS[name]
    if found is None:
        return problem(ABOUT, f"{name} is not installed", INSTALL)
    numbers = tuple(int(each) for each in re.findall(r"\d+", found)[:2])
    if least <= numbers < below:
        return ok(ABOUT, f"{name} {found}")
    wanted = f"{'.'.join(map(str, least))} or newer" + (f", below {below[0]}" if below[0] < 1000 else "")
    return problem(ABOUT, f"{name} {found}", f"install {name} {wanted}: {INSTALL}")


def java_finding() -> Finding:
    from headrace.spark.java import JavaMissing, find_java

    try:
        java = find_java()
    except JavaMissing as missing:
        return problem(ABOUT, "no Java for Spark", str(missing))
    return ok(ABOUT, f"Java {java.version} of {java.origin}")


def interpreter_findings(chosen: str | None, own: str) -> Iterator[Finding]:
    """Report a PYSPARK_PYTHON that differs from this interpreter: Headrace may not be installed there."""
    from headrace.spark.worker_python import is_worker_python

    if chosen is not None and chosen != own and not is_worker_python(chosen):
        advice = "unset it, unless Headrace is installed there too: Spark workers import it"
        yield warning(ABOUT, f"PYSPARK_PYTHON is {chosen}", advice)


def helper_finding() -> Finding:
    from headrace.wire import compiled
    from headrace.wire.columns.native import load

    if load() is not None:
        return ok(ABOUT, "records are decoded by the compiled helper")
    return note(ABOUT, "records are decoded by numpy", f"for faster reads of small records: {compiled.INSTALL}")


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None

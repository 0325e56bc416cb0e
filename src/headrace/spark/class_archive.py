"""Archive Spark's classes as Java has loaded and verified them, so that later starts load them from one file.

Spark loads more than twenty thousand classes before the first batch of a pipeline. With the archive (Java's class data
sharing) its main thread needs half the time until then. Java checks that the Java version and the jars are the same,
and loads the classes as usual if they are not.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.spark.scripts import places

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
EXECUTOR_JAVA_OPTIONS = "spark.executor.extraJavaOptions"
DAEMON_JAVA_OPTIONS = "SPARK_DAEMON_JAVA_OPTS"
"""The environment variable with options for the master and the workers of a cluster."""
_SAID_ASIDE = "-Xlog:all=off:stdout -Xlog:all=warning:stderr"
"""Keeps Java's messages about an unusable archive off standard output."""


def archive_file(java_home: Path) -> Path:
    """Return the path of the archive of this user, Java and Spark, whether it exists or not."""
    import pyspark

    return places("classes", java_home)[0] / f"spark-{pyspark.__version__}.jsa"


def with_archive(
    settings: Mapping[str, str], java_home: Path, *, names: Sequence[str] = (JAVA_OPTIONS,)
) -> dict[str, str]:
    """Return Spark's settings with the archive, if this user owns one: an archive is as powerful as code.

    `names` are the settings that hold options for Java.
    """
    file = archive_file(java_home)
    try:
        is_own = file.stat().st_uid == os.getuid()
    except OSError:
        is_own = False
    if not is_own:
        return dict(settings)
    options = f'"-XX:SharedArchiveFile={file}" {_SAID_ASIDE} '
    return {**settings, **{name: f"{options}{settings.get(name, '')}".strip() for name in names}}


def archiving(settings: Mapping[str, str], file: Path) -> dict[str, str]:
    """Return Spark's settings for a run at whose end Java writes the archive."""
    return {**settings, JAVA_OPTIONS: f'"-XX:ArchiveClassesAtExit={file}" {_SAID_ASIDE}'}

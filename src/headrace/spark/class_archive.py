"""Spark's classes as Java has loaded and checked them once, kept in a file that later starts take them from.

Spark loads more than twenty thousand classes before the first batch of a pipeline. With the archive (Java calls it
class data sharing) its main thread needs half the time until then. Java itself looks whether it is the same Java and
the jars are the same, and loads them as ever where they are not.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from headrace.spark.scripts import places

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SAID_ASIDE = "-Xlog:all=off:stdout -Xlog:all=warning:stderr"
"""What Java says about an archive that it does not take would else be on standard output."""


def archive_file(java_home: Path) -> Path:
    """Where the archive of this user, Java and Spark is, or would be."""
    import pyspark

    return places("classes", java_home)[0] / f"spark-{pyspark.__version__}.jsa"


def with_archive(settings: Mapping[str, str], java_home: Path) -> dict[str, str]:
    """Spark's settings with the archive, if there is one of this user's own: it is as good as code."""
    file = archive_file(java_home)
    try:
        is_own = file.stat().st_uid == os.getuid()
    except OSError:
        is_own = False
    if not is_own:
        return dict(settings)
    options = f'"-XX:SharedArchiveFile={file}" {_SAID_ASIDE} {settings.get(JAVA_OPTIONS, "")}'
    return {**settings, JAVA_OPTIONS: options.strip()}


def archiving(settings: Mapping[str, str], file: Path) -> dict[str, str]:
    """Spark's settings for a run at whose end Java writes what it has loaded."""
    return {**settings, JAVA_OPTIONS: f'"-XX:ArchiveClassesAtExit={file}" {_SAID_ASIDE}'}

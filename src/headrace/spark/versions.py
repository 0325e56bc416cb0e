"""The supported versions of Spark, and the sessions in which a pipeline can run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SINCE = (4, 2)
BELOW = (5,)


class UnsupportedSpark(RuntimeError):
    """The installed Spark, or the session, lacks a required feature; the message says what to install."""


def check_version(found: str | None = None) -> None:
    """Refuse a version of PySpark, by default the installed one, that would fail later within a worker."""
    if found is None:
        import pyspark

        found = pyspark.__version__
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal())
    if not SINCE <= numbers < BELOW:
        raise UnsupportedSpark(
            f"Spark {found} is not supported: headrace works with Spark {'.'.join(map(str, SINCE))} and newer, below "
            f"{BELOW[0]}: pip install 'headrace[spark]' brings one"
        )


def check_session(spark: "SparkSession") -> None:
    """Refuse a session in which a pipeline cannot run."""
    from pyspark.sql import SparkSession

    if not isinstance(spark, SparkSession):
        raise UnsupportedSpark(
            "a pipeline needs a classic Spark session, but this is a Spark Connect session, which does not "
            "provide the plan of a query: run it with `headrace pipeline run`, or on a cluster whose "
            "sessions are classic"
        )
    check_version(spark.version)

"""The session in which the query of a pipeline is compiled, for runs and backfills."""

from typing import TYPE_CHECKING

from headrace.spark.pipelines.definition import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.streaming.numRecentProgressUpdates": "1000"}
"""Times are in UTC, whatever the machine's time zone."""


def own_session(spark: "SparkSession", pipeline: Pipeline) -> "SparkSession":
    """Return a session separate from those of other pipelines in this process; static settings were given at Spark's
    start.
    """
    session = spark.newSession()
    for name, value in {**SETTINGS, **pipeline.spark.settings}.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session

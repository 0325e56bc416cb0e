"""The session in which the query of a pipeline is compiled, in a run and in a backfill alike."""

from typing import TYPE_CHECKING

from headrace.spark.pipelines.definition import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.streaming.numRecentProgressUpdates": "1000"}
"""Times are told in UTC, whatever the machine's own zone is."""


def own_session(spark: "SparkSession", pipeline: Pipeline) -> "SparkSession":
    """Apart from those of other pipelines in this process; what cannot be set here was given when Spark was started."""
    session = spark.newSession()
    for name, value in {**SETTINGS, **pipeline.spark.settings}.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session

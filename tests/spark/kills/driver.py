"""A Spark program that copies files or a topic: `python -m tests.spark.kills.driver SETTINGS`, a JSON object."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headrace.spark.class_archive import with_archive
from tests.spark.kills.failing_source import POINTS_OPTION, FailingSource
from tests.spark.kills.points import PAUSE, SHUFFLE, Points
from tests.spark.sessions import FEW_ROWS

STAGE_RETRY = "stage retry"
SPECULATION = "speculation"
LOOK_S = 0.2
STAGES_MAX = 200
TASKS_MAX = 100


def has_retried_a_stage(spark: SparkSession, stages: Iterable[int]) -> bool:
    tracker = spark.sparkContext.statusTracker()
    found = (tracker.getStageInfo(number) for number in stages)
    return any(stage is not None and stage.currentAttemptId > 0 for stage in found)


def has_speculated(spark: SparkSession, stages: Iterable[int]) -> bool:
    store = spark.sparkContext._jsc.sc().statusStore()
    every = (store.taskList(number, 0, TASKS_MAX) for number in stages)
    return any(tasks.apply(index).speculative() for tasks in every for index in range(tasks.size()))


HasHappened = Callable[[SparkSession, Iterable[int]], bool]


def note(spark: SparkSession, points: Points, what: str, has_happened: HasHappened) -> None:
    """Note when Spark does what its tasks cannot see. Only running stages are looked at: each is a call of Java."""
    tracker = spark.sparkContext.statusTracker()
    while not points.has_seen(what):
        if has_happened(spark, tracker.getActiveStageIds()):
            points.note(what)
        time.sleep(LOOK_S)


def rows_of(spark: SparkSession, settings: dict[str, str]) -> DataFrame:
    """Of files, each a micro-batch, or of a topic from its end on."""
    if "source" not in settings:
        files = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
        return files.json(f"{settings['folder']}/input")
    topic = spark.readStream.format("headrace").option("kafka.bootstrap.servers", settings["servers"])
    topic = topic.option("subscribe", settings["source"]).option("startingOffsets", "latest")
    return topic.load().selectExpr("CAST(value AS STRING) AS id")


def main(settings: dict[str, str]) -> None:
    folder = settings["folder"]
    builder = SparkSession.builder.master(settings["master"]).appName("headrace-kills")
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **FEW_ROWS,
        **json.loads(settings.get("conf", "{}")),
    }
    for name, value in with_archive(conf, Path(os.environ["JAVA_HOME"])).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    points = Points(folder)
    points.process("driver", os.getpid())
    jvm = spark._jvm
    assert jvm is not None
    points.process("jvm", jvm.java.lang.ProcessHandle.current().pid())
    watched = [
        (what, has_happened)
        for victim, what, has_happened in (
            (SHUFFLE, STAGE_RETRY, has_retried_a_stage),
            (PAUSE, SPECULATION, has_speculated),
        )
        if any(plan.victim == victim for plan in points.plans())
    ]
    for each in watched:
        threading.Thread(target=note, args=(spark, points, *each), daemon=True).start()
    spark.dataSource.register(FailingSource)
    query = (
        rows_of(spark, settings)
        .repartition(int(settings["tasks"]))
        .selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
        .writeStream.format(FailingSource.name())
        .option(POINTS_OPTION, folder)
        .option("kafka.bootstrap.servers", settings["servers"])
        .option("topic", settings["topic"])
        .option("delivery", "exactly-once")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    for what, has_happened in watched:
        if has_happened(spark, range(STAGES_MAX)):
            points.note(what)
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

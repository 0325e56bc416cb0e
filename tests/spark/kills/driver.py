"""A Spark program that copies files into a topic: `python -m tests.spark.kills.driver SETTINGS`, a JSON object."""

import json
import os
import sys
import threading
import time

from pyspark.sql import SparkSession

from tests.spark.kills.failing_source import POINTS_OPTION, FailingSource
from tests.spark.kills.points import SHUFFLE, Points

STAGE_RETRY = "stage retry"
LOOK_S = 0.2
STAGES_MAX = 200


def note_stage_retries(spark: SparkSession, points: Points) -> None:
    """Tell when Spark tries a stage again, which its tasks cannot see."""
    tracker = spark.sparkContext.statusTracker()
    while not points.has_seen(STAGE_RETRY):
        stages = (tracker.getStageInfo(number) for number in range(STAGES_MAX))
        if any(stage is not None and stage.currentAttemptId > 0 for stage in stages):
            points.note(STAGE_RETRY)
        time.sleep(LOOK_S)


def main(settings: dict[str, str]) -> None:
    folder = settings["folder"]
    builder = SparkSession.builder.master(settings["master"]).appName("headrace-kills")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **json.loads(settings.get("conf", "{}")),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    points = Points(folder)
    points.process("driver", os.getpid())
    jvm = spark._jvm
    assert jvm is not None
    points.process("jvm", jvm.java.lang.ProcessHandle.current().pid())
    if any(plan.victim == SHUFFLE for plan in points.plans()):
        threading.Thread(target=note_stage_retries, args=(spark, points), daemon=True).start()
    spark.dataSource.register(FailingSource)
    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json(f"{folder}/input")
    query = (
        rows.repartition(int(settings["tasks"]))
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
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

"""A program on Spark Connect that writes in foreachBatch: refused without a name, once with one, also when replayed.

It is a process of its own, as a process has one kind of session. It prints the outcome as JSON.
"""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.client.blocking.whole_topics import read_topic

ROWS = 30


def main(address: str, folder: Path) -> None:
    import os

    from headrace.spark.session_launcher import default_conf, spark_environment

    os.environ.update(spark_environment(is_local=True))
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    builder = builder.remote("local[2]")
    for name, value in {**default_conf(is_local=True), "spark.log.level": "OFF", "spark.ui.enabled": "false"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    to_topic = {"kafka.bootstrap.servers": address, "topic": "out", "delivery": "exactly-once"}

    def unnamed(rows: Any, _batch: int) -> None:
        rows.select("value").write.format("headrace").mode("append").options(**to_topic).save()

    def named(rows: Any, batch: int) -> None:
        options = {**to_topic, "idempotenceKey": "connect", "idempotenceBatchId": batch}
        rows.select("value").write.format("headrace").mode("append").options(**options).save()

    def run(write: Callable[[Any, int], None], name: str) -> str:
        source = spark.readStream.format("headrace").option("kafka.bootstrap.servers", address)
        source = source.option("subscribe", "in").option("startingOffsets", "earliest")
        source = source.option("maxOffsetsPerTrigger", ROWS // 2)
        stream = source.load().writeStream.foreachBatch(write).option("checkpointLocation", str(folder / name))
        query = stream.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except Exception as error:
            return str(error)
        return ""

    refused = run(unnamed, "unnamed")
    after_refusal = len(list(read_topic({"bootstrap.servers": address}, "out")))
    failures = [run(named, "named")]
    shutil.rmtree(folder / "named" / "commits")  # as if killed between the write and the checkpoint: all is repeated
    failures.append(run(named, "named"))
    counts = Counter(record.value for record in read_topic({"bootstrap.servers": address}, "out"))
    json.dump(
        {
            "refused": refused,
            "after_refusal": after_refusal,
            "failures": failures,
            "rows": len(counts),
            "most": max(counts.values(), default=0),
        },
        sys.stdout,
    )
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

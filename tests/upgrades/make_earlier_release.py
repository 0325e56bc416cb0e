"""Makes earlier_release.tar.xz: a data folder, checkpoints and tables that the code of commit 0e14802 has written.

Run `python -m tests.upgrades.make_earlier_release` in a clone that has the commit, with pyspark and Java installed.
That commit is the last one that called a batch commit an epoch.

Each of three queries writes two micro-batches of ROWS numbers: to a topic, to a Delta table and to a Parquet folder.
Then the second micro-batch is removed from the commit log of the checkpoint, as if the driver had been killed after the
sink's commit and before its own, so that Spark replays it.
"""

from pathlib import Path
from typing import Any

from tests.upgrades.archive_writer import main

COMMIT = "0e14802"
ARCHIVE = Path(__file__).with_name("earlier_release.tar.xz")
TOPIC = "numbers"
ROWS = 5
"""Of each micro-batch."""
BATCHES = 2
BROKER_CONFIG = {"log.retention.ms": "-1"}
"""The archive grows older than the default retention."""
KINDS = ("headrace", "headrace-delta", "headrace-parquet")
LEFT_OUT = (".crc",)
"""Spark does without the checksums of its own files."""
SECONDS_MAX = 600


def rows(spark: Any) -> Any:
    """One micro-batch per run, with the same rows whenever it is replayed."""
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 1)
    return stream.load().selectExpr("CAST(value AS STRING) AS value")


def run_once(spark: Any, kind: str, folder: Path, bootstrap: str) -> None:
    """Run the query of one kind until it has nothing left to do."""
    options = {"kafka.bootstrap.servers": bootstrap, "topic": TOPIC} if kind == "headrace" else {}
    options |= {} if kind == "headrace" else {"path": str(folder / kind)}
    written = rows(spark).writeStream.format(kind).options(**options)
    query = written.option("checkpointLocation", str(folder / "checkpoints" / kind)).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def write(folder: Path) -> None:
    """Write everything into the folder; this runs with the code of the earlier version."""
    from headrace.spark import session
    from headrace.testing import EmbeddedBroker

    spark = session("earlier-release", master="local[1]", conf={"spark.ui.enabled": "false"})
    with EmbeddedBroker(data_dir=str(folder / "data"), config=BROKER_CONFIG) as broker:
        broker.create_topic(TOPIC)
        for kind in KINDS:
            for _ in range(BATCHES):
                run_once(spark, kind, folder, broker.bootstrap_servers)
            (folder / "checkpoints" / kind / "commits" / str(BATCHES - 1)).unlink()
    spark.stop()


if __name__ == "__main__":
    main(__file__, write, commit=COMMIT, archive=ARCHIVE, left_out=LEFT_OUT, seconds_max=SECONDS_MAX)

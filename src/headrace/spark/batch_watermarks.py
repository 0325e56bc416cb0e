"""Read the watermark by which a micro-batch drops rows from the checkpoint's log, within a task of the batch.

In batch N Spark drops the rows that are older than the watermark of batch N-1. That watermark is in the log before the
batch begins, so the source can add it to each row, and a replay of the batch adds the same.
"""

import json
from pathlib import Path

BATCH_PROPERTY = "streaming.sql.batchId"
"""The local property in which Spark passes a task the number of its micro-batch."""


def watermark_before(folder: str, batch: int) -> int:
    """Return milliseconds; zero before the second batch. `folder` is Spark's checkpoint, which the executors must
    reach.
    """
    try:
        metadata = (Path(folder) / "offsets" / str(batch - 1)).read_text(encoding="utf-8").splitlines()[1]
    except FileNotFoundError:
        return 0
    return int(json.loads(metadata)["batchWatermarkMs"])


def watermark_of_task(folder: str) -> int:
    """Return the watermark of the batch that this process works on; zero outside of a batch."""
    from pyspark import TaskContext

    task = TaskContext.get()
    batch = task.getLocalProperty(BATCH_PROPERTY) if task is not None else None
    return 0 if batch is None else watermark_before(folder, int(batch))

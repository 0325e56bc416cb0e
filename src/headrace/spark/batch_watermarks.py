"""The watermark that a micro-batch drops rows by, as a task of the batch finds it in the checkpoint's log.

In batch N Spark drops what the watermark of batch N-1 has passed. That watermark stands in the log before the batch
begins, so the source can give it with each row, and a replay of the batch gives the same.
"""

import json
from pathlib import Path

BATCH_PROPERTY = "streaming.sql.batchId"
"""Spark tells a task its micro-batch under this name."""


def watermark_before(folder: str, batch: int) -> int:
    """Milliseconds; zero before the second batch. `folder` is Spark's checkpoint, which the executors must reach."""
    try:
        metadata = (Path(folder) / "offsets" / str(batch - 1)).read_text(encoding="utf-8").splitlines()[1]
    except FileNotFoundError:
        return 0
    return int(json.loads(metadata)["batchWatermarkMs"])


def watermark_of_task(folder: str) -> int:
    """For the batch that this process works on; zero where it works on none."""
    from pyspark import TaskContext

    task = TaskContext.get()
    batch = task.getLocalProperty(BATCH_PROPERTY) if task is not None else None
    return 0 if batch is None else watermark_before(folder, int(batch))

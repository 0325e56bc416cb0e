"""Rows into a Delta table by their keys: what is there is replaced by what is newer, once for each batch.

The merge is done here, beside the driver, by the library deltalake. It carries the owner and the batch in its commit,
so that a repeat of the batch finds that it was done.
"""

from typing import TYPE_CHECKING

from headrace.spark.pipelines.definition import DeltaSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_MAX = 1_000_000
"""Of one batch: they are held in the driver's memory."""
MERGE_ATTEMPTS_MAX = 10
"""Commits of others that may come in between."""


class TooManyRows(RuntimeError):
    """A batch has more rows than the driver merges at once."""


def upsert(rows: "DataFrame", path: str, sink: DeltaSink, *, owner: str, batch_id: int) -> None:
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError

    newest = _newest(rows, sink).toArrow()
    if newest.num_rows > ROWS_MAX:
        raise TooManyRows(
            f"{newest.num_rows} rows of one batch are too many to merge: set rows_per_batch of the source"
        )
    if not DeltaTable.is_deltatable(path):
        write_deltalake(path, newest.schema.empty_table(), mode="ignore", partition_by=list(sink.partition_by) or None)
    noted = CommitProperties(app_transactions=[Transaction(app_id=owner, version=batch_id)])
    same = " AND ".join(_same_key(key, newest.column(key).null_count) for key in sink.keys)
    newer = f"target.`{sink.order_by}` IS NULL OR source.`{sink.order_by}` >= target.`{sink.order_by}`"
    for attempt in range(1, MERGE_ATTEMPTS_MAX + 1):
        table = DeltaTable(path)
        done = table.transaction_version(owner)
        if done is not None and done >= batch_id:
            return
        try:
            merge = table.merge(newest, same, source_alias="source", target_alias="target", commit_properties=noted)
            merge.when_matched_update_all(predicate=newer).when_not_matched_insert_all().execute()
            return
        except CommitFailedError:
            if attempt == MERGE_ATTEMPTS_MAX:
                raise


def _same_key(key: str, nulls: int) -> str:
    """A null is a key like any other, as it is within a batch. Only where there are some: Delta skips files by `=`."""
    compared = "IS NOT DISTINCT FROM" if nulls else "="
    return f"(target.`{key}` {compared} source.`{key}`)"


def _newest(rows: "DataFrame", sink: DeltaSink) -> "DataFrame":
    """One row for each key, the newest of the batch; rows without anything to order them by are the oldest."""
    from pyspark.sql import functions as sql

    whole = sql.struct(*(sql.col(f"`{name}`") for name in rows.columns))
    order = sql.struct(sql.col(str(sink.order_by)))  # which is never null: Spark gives nothing for a null
    grouped = rows.groupBy(*sink.keys).agg(sql.max_by(whole, order).alias("newest"))
    return grouped.select("newest.*")

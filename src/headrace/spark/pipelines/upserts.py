"""Upsert rows into a Delta table by their keys: newer rows replace older ones, once for each batch.

The library deltalake does the merge, beside the driver. Its commit contains the owner and the batch, so that a repeat
of the batch finds that it is complete.
"""

from typing import TYPE_CHECKING

from headrace.spark.pipelines.definition import DeltaSinkDefinition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_MAX = 1_000_000
"""Rows of one batch, which are held in the driver's memory."""
MERGE_ATTEMPTS_MAX = 10
"""Attempts when other commits come in between."""


class TooManyRows(RuntimeError):
    """A batch has more rows than the driver merges at once."""


def upsert(rows: "DataFrame", path: str, sink: DeltaSinkDefinition, *, owner: str, batch_id: int) -> None:
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
    """Compare keys; null equals null, as within a batch. Used only if there are nulls: Delta skips files by `=`."""
    compared = "IS NOT DISTINCT FROM" if nulls else "="
    return f"(target.`{key}` {compared} source.`{key}`)"


def _newest(rows: "DataFrame", sink: DeltaSinkDefinition) -> "DataFrame":
    """Return the newest row of the batch for each key; rows with a null in the order column are the oldest."""
    from pyspark.sql import functions as sql

    whole = sql.struct(*(sql.col(f"`{name}`") for name in rows.columns))
    order = sql.struct(sql.col(str(sink.order_by)))  # which is never null: Spark returns nothing for a null
    grouped = rows.groupBy(*sink.keys).agg(sql.max_by(whole, order).alias("newest"))
    return grouped.select("newest.*")

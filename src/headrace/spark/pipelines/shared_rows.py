"""Read a source once for two uses of its rows: good rows continue, the others become dead letters.

Spark runs the branches of a query one by one, each down to the source, unless both use the same exchange, which is
filled once. So the rows of a source go through an exchange in which each reading task has its own partition, so that
they keep their order. Spark also moves filters and column pruning down each branch, and two exchanges with different
rows are two reads. So the rows pass the exchange packed into one column and are counted above it: neither optimisation
crosses that. In a batch job Spark never merges two reads; there the rows are persisted until both uses have read them.
"""

from typing import TYPE_CHECKING

from headrace.spark.pipelines.output_rows import quoted
from headrace.spark.pipelines.source_rows import ERROR, QUARANTINE, RECORD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PACKED, TASK = "__packed", "__task"
PASSED_COLUMN = "passed"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def shared_rows(checked: "DataFrame") -> "DataFrame":
    """Return the rows for both uses; in a batch job the caller unpersists them. Records continue only with possible
    dead letters.
    """
    from pyspark.sql import functions as sql

    may_be_letter = sql.col(ERROR).isNotNull() | sql.col(QUARANTINE).isNotNull()
    columns = [
        sql.when(may_be_letter, sql.col(name)).alias(name) if name == RECORD else sql.col(quoted(name))
        for name in checked.columns
    ]
    packed = checked.select(sql.struct(*columns).alias(PACKED), sql.spark_partition_id().alias(TASK))
    if not checked.isStreaming:
        return packed.select(PACKED).persist()
    session = checked.sparkSession
    wanted = session.conf.get(SHUFFLE_PARTITIONS) or ""  # a number, or a word where Spark's host chooses it
    places = int(wanted) if wanted.isdecimal() else session.sparkContext.defaultParallelism
    return packed.repartitionById(places, TASK)


def unpacked(shared: "DataFrame", metrics: str) -> "DataFrame":
    """Return the rows for one of the uses, counted under a unique name."""
    from pyspark.sql import functions as sql

    return shared.observe(metrics, sql.count(sql.lit(1)).alias(PASSED_COLUMN)).select(f"{PACKED}.*")

"""One reading of a source for two uses of its rows: the good ones go on, the others become letters.

Spark runs the branches of a query one by one, each down to the source, unless both stand on the same exchange: that it
fills once. So the rows of a source go through one, in which each task of the reading has a place, so that they stay in
their order. Spark also moves filters and the choice of columns down each branch, and two exchanges with different rows
are two readings. Hence the rows pass it packed into one column, and are counted above it: neither goes through that.
In a batch job Spark never takes two readings for the same; there the rows are kept until both uses have had them.
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
    """What both uses stand on; in a batch job the caller gives it up. Records go on with possible letters only."""
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
    """The rows for one of the uses, counted under a name that no other has."""
    from pyspark.sql import functions as sql

    return shared.observe(metrics, sql.count(sql.lit(1)).alias(PASSED_COLUMN)).select(f"{PACKED}.*")

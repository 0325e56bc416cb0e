"""Messages by their ids, each once."""

from pyspark.sql import DataFrame


def once_each(messages: DataFrame) -> DataFrame:
    return messages.dropDuplicatesWithinWatermark(["id"])

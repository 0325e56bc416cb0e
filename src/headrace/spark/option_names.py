"""The names of all options of the format, in the case a user writes them: Spark hands them over in small letters."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

KAFKA_PREFIX = "kafka."
TABLE_PREFIX = "option."
"""What Spark puts before the OPTIONS of a CREATE TABLE, beside the options as they are."""

SOURCE_NAMES = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
"""As in Spark's Kafka connector."""

OWN_SOURCE_NAMES = (
    "bootstrap.servers",
    "commitGroup",
    "maxBytesPerTrigger",
    "columns",
    "valueFormat",
    "schema",
    "onBadRecord",
    "dataLossPolicy",
    "pushdown",
    "scan",
    "watermarkFrom",
)

SINK_NAMES = ("topic", "delivery", "sinkName", "idempotenceKey", "idempotenceEpoch", "lanes")

SPARK_NAMES = (
    *("path", "queryName", "checkpointLocation", "outputMode"),
    *("comment", "collation", "location", "provider", "owner", "external", "is_managed_location"),
)
"""What Spark itself adds: to queries, and to tables of its catalog."""

KNOWN_NAMES = (*SOURCE_NAMES, *OWN_SOURCE_NAMES, *SINK_NAMES, *SPARK_NAMES)


class OptionError(ValueError):
    """An option that is missing, unknown, wrong, or contradicts another; the message names it and what to do."""


def check_names(options: Mapping[str, str]) -> None:
    """Refuse the first name that nobody knows; those with `kafka.` are looked at by those who pass them on."""
    known = {name.lower(): name for name in KNOWN_NAMES}
    for name in options:
        if name.lower().startswith(TABLE_PREFIX):
            raise OptionError(
                "a table does not keep options, as Spark does not hand them to a Python source that is read: write "
                "CREATE TABLE t USING headrace, and SELECT * FROM t WITH (subscribe = 'orders', ...), or use CREATE "
                "TEMPORARY VIEW t USING headrace OPTIONS (...)"
            )
        if name.lower() not in known and not name.lower().startswith(KAFKA_PREFIX):
            raise OptionError(f'unknown option "{name}" of format "headrace"{suggestion(name, known.values())}')


def suggestion(name: str, known: Iterable[str]) -> str:
    """The nearest right name, in its right case, as the end of a message."""
    by_letters = {each.lower(): each for each in known}
    nearest = get_close_matches(name.lower(), by_letters, n=1)
    return f': did you mean "{by_letters[nearest[0]]}"?' if nearest else "; the guide of the Spark source lists them"

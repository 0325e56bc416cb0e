"""The names of all options of the format, in their documented case: Spark passes them in lower case."""

from collections.abc import Iterable, Mapping

from headrace.model.nearest_names import nearest_of, question

KAFKA_PREFIX = "kafka."
TABLE_PREFIX = "option."
"""The prefix that Spark adds to copies of the OPTIONS of a CREATE TABLE."""

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
    "sourceName",
)

STREAM_NAMES = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger", "commitGroup")
"""Options that a batch read accepts and ignores, as Spark's Kafka connector does with the first three."""

SINK_NAMES = ("topic", "delivery", "sinkName", "idempotenceKey", "idempotenceBatchId", "lanes")

BOTH_NAMES = ("bootstrap.servers", "includeHeaders")
"""For reads and writes; a write ignores the second, as in Spark's Kafka connector."""

SPARK_NAMES = (
    *("path", "queryName", "checkpointLocation", "outputMode"),
    *("comment", "collation", "location", "provider", "owner", "external", "is_managed_location"),
)
"""Options that Spark itself adds: to queries, and to tables of its catalog."""

KNOWN_NAMES = (*SOURCE_NAMES, *OWN_SOURCE_NAMES, *SINK_NAMES, *SPARK_NAMES)

RENAMED = {"idempotenceEpoch": "idempotenceBatchId"}
"""Options of development versions before 0.1 and their present names.

They are refused, since ignoring one could repeat rows.
"""


class OptionError(ValueError):
    """An option is missing, unknown, invalid, or contradicts another; the message names it and what to do."""


def check_names(options: Mapping[str, str]) -> None:
    """Refuse the first unknown name; those with `kafka.` are checked where they are passed on."""
    refuse_renamed(options)
    known = {name.lower(): name for name in KNOWN_NAMES}
    for name in options:
        if name.lower().startswith(TABLE_PREFIX):
            raise OptionError(
                "a table does not keep options, because Spark does not pass them to a Python source that is "
                "read: write CREATE TABLE t USING headrace, and SELECT * FROM t WITH (subscribe = 'orders', "
                "...), or use CREATE TEMPORARY VIEW t USING headrace OPTIONS (...)"
            )
        if name.lower() not in known and not name.lower().startswith(KAFKA_PREFIX):
            raise OptionError(f'unknown option "{name}" of format "headrace"{suggestion(name, known.values())}')


def refuse_renamed(options: Iterable[str]) -> None:
    """Refuse the options of development versions before 0.1 that have another name now."""
    given = {name.lower() for name in options}
    for before, now in RENAMED.items():
        if before.lower() in given:
            raise OptionError(f'option "{before}" was renamed before release 0.1: write "{now}" instead')


def refuse_names(options: Iterable[str], foreign: Iterable[str], why: str) -> None:
    """Refuse names that have a meaning elsewhere and none here: the user expected an effect."""
    by_letters = {each.lower(): each for each in foreign if each not in BOTH_NAMES}
    for name in options:
        if name.lower() in by_letters:
            raise OptionError(f'option "{by_letters[name.lower()]}" {why}')


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the nearest valid name, in its documented case, as the end of a message."""
    nearest = nearest_of(name, known)
    return f": {question(nearest)}" if nearest is not None else "; the guide of the Spark source lists them"

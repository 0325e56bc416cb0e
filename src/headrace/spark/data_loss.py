"""Records that were to be read and are gone: said with exact ranges, whatever the policy does then."""

from collections.abc import Iterable

from headrace.model.ids import TopicPartition
from headrace.spark.offset_vectors import ranges_text
from headrace.spark.said import say
from headrace.spark.source_options import DataLossPolicy

ADVICE = (
    'set option "dataLossPolicy" to skip-and-report (or "failOnDataLoss" to false) to go on behind them, or to '
    "earliest to go on with the first record that there is"
)


class DataLost(RuntimeError):
    """The policy is to fail."""


def lost_text(
    lost: Iterable[tuple[TopicPartition, int, int]], why: str = "retention or a deletion removed them"
) -> str:
    return f"records are lost before they were read: {ranges_text(lost)} ({why})"


def settle_loss(text: str, policy: DataLossPolicy) -> None:
    """Fail, or report what is lost and let the caller go on."""
    if policy == "fail":
        raise DataLost(f"{text}; {ADVICE}")
    say(f'{text}; the query goes on, as option "dataLossPolicy" is {policy}')

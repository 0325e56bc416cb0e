"""Records that were to be read and are gone: said with exact ranges, whatever the policy does then."""

from collections.abc import Iterable

from headrace.model.ids import TopicPartition
from headrace.spark.log_once import say
from headrace.spark.offset_vectors import ranges_text
from headrace.spark.source_options import SourceOptions

ONLY_SOURCE = "input"
"""The name that a pipeline gives to its source if it has one."""


class DataLost(RuntimeError):
    """The policy is to fail."""


def lost_text(
    lost: Iterable[tuple[TopicPartition, int, int]], why: str = "retention or a deletion removed them"
) -> str:
    return f"records are lost before they were read: {ranges_text(lost)} ({why})"


def settle_loss(text: str, options: SourceOptions, *, advice: str | None = None) -> None:
    """Fail, or report what is lost and let the caller go on.

    `advice` stands in for the one to skip the loss, where the loss is a sign of another mistake.
    """
    if options.data_loss == "fail":
        raise DataLost(f"{text}; {skip_advice(options.name) if advice is None else advice}")
    say(f"{text}; the query goes on, as {policy_name(options.name)} is {options.data_loss}")


def policy_name(source: str | None) -> str:
    """Where a user sets the policy: a key of pipeline.yml in a pipeline, which alone names its sources."""
    if source is None:
        return 'option "dataLossPolicy"'
    section = "source" if source == ONLY_SOURCE else f"sources.{source}"
    return f"`{section}.options.dataLossPolicy` of pipeline.yml"


def skip_advice(source: str | None) -> str:
    other = ' (or "failOnDataLoss" to false)' if source is None else ""
    return (
        f"set {policy_name(source)} to skip-and-report{other} to go on behind them, or to earliest to go on with the "
        "first record that there is"
    )

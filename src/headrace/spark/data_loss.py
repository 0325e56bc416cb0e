"""Report records that were lost before they were read, with exact ranges, and apply the data loss policy."""

from collections.abc import Iterable

from headrace.model.ids import TopicPartition
from headrace.spark.log_once import log_line
from headrace.spark.offset_vectors import ranges_text
from headrace.spark.source_options import SourceOptions

ONLY_SOURCE = "input"
"""The name that a pipeline gives to its only source."""


class DataLost(RuntimeError):
    """Records were lost and the policy is to fail."""


def lost_text(
    lost: Iterable[tuple[TopicPartition, int, int]], why: str = "retention or a deletion removed them"
) -> str:
    return f"records were lost before they were read: {ranges_text(lost)} ({why})"


def handle_loss(text: str, options: SourceOptions, *, advice: str | None = None) -> None:
    """Fail, or report the loss and let the caller continue.

    `advice` replaces the advice to skip the loss, where the loss is a sign of another mistake.
    """
    if options.data_loss == "fail":
        raise DataLost(f"{text}; {skip_advice(options.name) if advice is None else advice}")
    log_line(f"{text}; the query continues, because {policy_name(options.name)} is {options.data_loss}")


def policy_name(source: str | None) -> str:
    """Return where a user sets the policy: in a pipeline, which alone names its sources, a key of pipeline.yml."""
    if source is None:
        return 'option "dataLossPolicy"'
    section = "source" if source == ONLY_SOURCE else f"sources.{source}"
    return f"`{section}.options.dataLossPolicy` of pipeline.yml"


def skip_advice(source: str | None) -> str:
    other = ' (or "failOnDataLoss" to false)' if source is None else ""
    return (
        f"set {policy_name(source)} to skip-and-report{other} to continue after them, or to earliest to "
        "continue with the first record that still exists"
    )

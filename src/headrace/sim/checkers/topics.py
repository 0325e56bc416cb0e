"""The expected metadata: the writer of a topic notes the responses, and every later view must agree.

Each topic name has one writer, so the expected value is known, or unknown while a change is in progress or was never
answered.
"""

from dataclasses import dataclass, field

from headrace.core.controller.image import MetadataImage
from headrace.model.ids import TopicId
from headrace.sim.checkers.violation import Violation, require

COMMITTED_STAYS = "acknowledged metadata stays"


@dataclass(slots=True)
class TopicTruth:
    """One name: the topic that has it, or none; `certain` unless a change of it is open."""

    name: str
    topic_id: TopicId | None = None
    partitions: int = 0
    certain: bool = True
    configs: dict[str, str] = field(default_factory=dict)
    open_configs: set[str] = field(default_factory=set)
    """Names of configs whose change was not answered."""


def check_image(image: MetadataImage, truths: list[TopicTruth]) -> None:
    """Check the metadata of a node after a start, or at any other time without a change in progress."""
    for truth in truths:
        if truth.certain:
            _check_topic(image, truth)


def _check_topic(image: MetadataImage, truth: TopicTruth) -> None:
    found = image.topics.get(truth.name)
    found_id = found.topic_id if found is not None else None
    if found_id != truth.topic_id:
        shown, answered = (topic_id.hex() if topic_id else "none" for topic_id in (found_id, truth.topic_id))
        raise Violation(COMMITTED_STAYS, f"topic {truth.name} has id {shown}, but {answered} was acknowledged")
    if found is None:
        return
    count = len(found.partitions)
    require(count == truth.partitions, COMMITTED_STAYS, f"{truth.name} has {count} partitions, not {truth.partitions}")
    configs = image.topic_configs(truth.name)
    for name, value in truth.configs.items():
        stays = name in truth.open_configs or configs.get(name) == value
        require(stays, COMMITTED_STAYS, f"{name} of {truth.name} is {configs.get(name)}, but {value} was acknowledged")

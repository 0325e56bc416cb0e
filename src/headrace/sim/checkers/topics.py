"""What metadata must be: one who changes it notes what was answered, and every look at it must agree.

Each topic name has one writer, so the truth is a value, or unknown while a change is under way or was never answered.
"""

from dataclasses import dataclass, field

from headrace.core.controller.image import MetadataImage
from headrace.model.ids import TopicId
from headrace.sim.checkers.violation import Violation, require

COMMITTED_STAYS = "metadata that was answered as committed stays"


@dataclass(slots=True)
class TopicTruth:
    """One name: the topic that stands for it, or none; `certain` unless a change of it is open."""

    name: str
    topic_id: TopicId | None = None
    partitions: int = 0
    certain: bool = True
    configs: dict[str, str] = field(default_factory=dict)
    open_configs: set[str] = field(default_factory=set)
    """Names of configs whose change was not answered."""


def check_image(image: MetadataImage, truths: list[TopicTruth]) -> None:
    """What a node shows after a start, or at any other time when no change is under way."""
    for truth in truths:
        if truth.certain:
            _check_topic(image, truth)


def _check_topic(image: MetadataImage, truth: TopicTruth) -> None:
    found = image.topics.get(truth.name)
    found_id = found.topic_id if found is not None else None
    if found_id != truth.topic_id:
        shown, answered = (topic_id.hex() if topic_id else "none" for topic_id in (found_id, truth.topic_id))
        raise Violation(COMMITTED_STAYS, f"topic {truth.name} has id {shown}, answered was {answered}")
    if found is None:
        return
    count = len(found.partitions)
    require(count == truth.partitions, COMMITTED_STAYS, f"{truth.name} has {count} partitions, not {truth.partitions}")
    configs = image.topic_configs(truth.name)
    for name, value in truth.configs.items():
        stays = name in truth.open_configs or configs.get(name) == value
        require(stays, COMMITTED_STAYS, f"{name} of {truth.name} is {configs.get(name)}, answered was {value}")

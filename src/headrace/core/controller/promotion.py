"""The permission of a node to become a voter by itself: none after an operator has removed it, until one adds it again.

It is a config of the node, so that it outlives restarts and the controller, and an operator can see it.
"""

from headrace.core.controller.commands import ControllerDecision
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import ConfigRecord, ResourceKind
from headrace.model.ids import NodeId

PROMOTION = "headrace.controller.promotion"
FORBIDDEN = "false"


def may_be_promoted(image: MetadataImage, node_id: NodeId) -> bool:
    return image.broker_configs(node_id).get(PROMOTION, "").strip().lower() != FORBIDDEN


def set_promotion(image: MetadataImage, node_id: NodeId, *, allowed: bool) -> ControllerDecision[None]:
    if may_be_promoted(image, node_id) == allowed:
        return ControllerDecision((), None)
    value = None if allowed else FORBIDDEN
    return ControllerDecision((ConfigRecord(ResourceKind.BROKER, str(node_id), PROMOTION, value),), None)

"""A registered broker as the metadata image has it."""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.core.controller.records import Endpoint, FeatureRange
from headrace.model.ids import NodeId


class BrokerImage(NamedTuple):
    node_id: NodeId
    incarnation: bytes
    broker_epoch: int
    endpoints: Mapping[str, Endpoint]
    """By listener name."""
    rack: str | None
    host: str
    fenced: bool = False
    """True from the registration until the broker has caught up, and after its session is over."""
    features: tuple[FeatureRange, ...] = ()
    directories: tuple[bytes, ...] = ()
    is_controller: bool = False
    metadata_directory: bytes = b""
    in_controlled_shutdown: bool = False
    boot_id: str = ""
    impaired: bool = False
    """True while the broker is too slow or full to lead while others can."""

    @property
    def takes_partitions(self) -> bool:
        """Return whether replicas on this broker may be new, in sync or leaders."""
        return not self.fenced and not self.in_controlled_shutdown

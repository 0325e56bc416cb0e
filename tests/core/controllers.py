"""A controller with brokers, for tests: deciding and applying in one call."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TypeVar

from headrace.core.controller.commands import (
    BrokerHeartbeat,
    BrokerRegistration,
    BrokerState,
    ControllerDecision,
    CreatableTopic,
    NewBroker,
    PartitionGrowth,
    TopicResult,
    TopicToDelete,
)
from headrace.core.controller.controller import Controller
from headrace.core.controller.features import SUPPORTED_FEATURES
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import Endpoint, Record
from headrace.core.controller.settings import ControllerSettings
from headrace.model.ids import NodeId, TopicId

Response = TypeVar("Response")

CLUSTER_ID = "cluster-of-tests"


def new_broker(node_id: int, **others: object) -> NewBroker:
    fields: dict[str, object] = {
        "node_id": NodeId(node_id),
        "cluster_id": CLUSTER_ID,
        "incarnation": bytes(16),
        "endpoints": [Endpoint("PLAINTEXT", "127.0.0.1", 9092 + node_id, "PLAINTEXT")],
        "rack": None,
        "host": f"host-{node_id}",
        "features": SUPPORTED_FEATURES,
        "metadata_directory": node_id.to_bytes(16, "big"),
    }
    return NewBroker(**fields | others)  # type: ignore[arg-type]


def topic_ids(seed: int = 1) -> Iterator[TopicId]:
    return (TopicId(number.to_bytes(16, "big")) for number in count(seed))


class TestedController(Controller):
    """Keeps every record it applied, as a log would."""

    __test__ = False

    def __init__(self, settings: ControllerSettings | None = None) -> None:
        super().__init__(MetadataImage(), settings or ControllerSettings(replication_factor_max=3))
        self.log: list[Record] = []
        self._ids = topic_ids()

    def carry_out(self, decision: ControllerDecision[Response]) -> Response:
        for record in decision.records:
            self.apply(record)
            self.log.append(record)
        self.image.version += bool(decision.records)  # a decision is one entry of the metadata log
        return decision.response

    def register(self, node_id: int, *, session_is_live: bool = False, **others: object) -> BrokerRegistration:
        return self.carry_out(
            self.register_broker(new_broker(node_id, **others), cluster_id=CLUSTER_ID, session_is_live=session_is_live)
        )

    def beat(self, node_id: int, epoch: int, **others: object) -> BrokerState:
        offset = {"metadata_offset": self.image.version - 1} | others
        beat = BrokerHeartbeat(node_id=NodeId(node_id), broker_epoch=epoch, **offset)  # type: ignore[arg-type]
        return self.carry_out(self.heartbeat(beat))

    def start_broker(self, node_id: int, **others: object) -> int:
        """Register and unfence a broker, and return its epoch."""
        self.carry_out(self.found_cluster())
        registration = self.register(node_id, **others)
        assert not registration.error, registration.message
        state = self.beat(node_id, registration.broker_epoch)
        assert not state.is_fenced
        return registration.broker_epoch

    def create(self, *topics: CreatableTopic, validate_only: bool = False) -> tuple[TopicResult, ...]:
        ids = [next(self._ids) for _ in topics]
        return self.carry_out(self.create_topics(topics, topic_ids=ids, validate_only=validate_only))

    def grow(self, name: str, partitions: int) -> None:
        growth = PartitionGrowth(name=name, partition_count=partitions)
        (result,) = self.carry_out(self.create_partitions([growth]))
        assert not result.error, result.message

    def delete(self, name: str) -> None:
        self.carry_out(self.delete_topics([TopicToDelete(name=name)]))

    def create_one(self, name: str, partitions: int = 1, **others: object) -> TopicResult:
        (result,) = self.create(CreatableTopic(name=name, partition_count=partitions, **others))  # type: ignore[arg-type]
        return result


def one_broker(**settings: object) -> TestedController:
    controller = TestedController(ControllerSettings(**settings))  # type: ignore[arg-type]
    controller.start_broker(1)
    return controller


def replayed(records: Sequence[Record]) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.apply(record)
    return image

"""A controller with brokers, for tests: deciding and applying in one call."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TypeVar

from headrace.core.controller.commands import Decision, NewTopic, TopicResult
from headrace.core.controller.controller import Controller
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import Endpoint, Record
from headrace.core.controller.settings import ControllerSettings
from headrace.model.ids import NodeId, TopicId

Response = TypeVar("Response")


def topic_ids(seed: int = 1) -> Iterator[TopicId]:
    return (TopicId(number.to_bytes(16, "big")) for number in count(seed))


class TestedController(Controller):
    """Keeps every record it applied, as a log would."""

    __test__ = False

    def __init__(self, settings: ControllerSettings | None = None) -> None:
        super().__init__(MetadataImage(), settings or ControllerSettings())
        self.log: list[Record] = []
        self._ids = topic_ids()

    def carry_out(self, decision: Decision[Response]) -> Response:
        for record in decision.records:
            self.apply(record)
            self.log.append(record)
        return decision.response

    def start_broker(self, node_id: int, *, host: str | None = None, incarnation: bytes = bytes(16)) -> int:
        decision = self.register_broker(
            NodeId(node_id),
            incarnation=incarnation,
            endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9092 + node_id, "PLAINTEXT")],
            rack=None,
            host=host or f"host-{node_id}",
        )
        return self.carry_out(decision).broker_epoch

    def create(self, *topics: NewTopic, validate_only: bool = False) -> tuple[TopicResult, ...]:
        ids = [next(self._ids) for _ in topics]
        return self.carry_out(self.create_topics(topics, topic_ids=ids, validate_only=validate_only))

    def create_one(self, name: str, partitions: int = 1, **others: object) -> TopicResult:
        (result,) = self.create(NewTopic(name=name, partition_count=partitions, **others))  # type: ignore[arg-type]
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

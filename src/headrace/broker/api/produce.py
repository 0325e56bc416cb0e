"""Produce (0): passes requests to the stages in `broker.produce`."""

from typing import Protocol

from headrace.broker.net.connection import Connection
from headrace.broker.net.receiver import HandleRepeat
from headrace.broker.produce.stages import ProduceStages


class ProduceServices(Protocol):
    @property
    def produce(self) -> ProduceStages: ...


def handle(
    broker: ProduceServices,
    connection: Connection,
    frame: memoryview,
    position: int,
    end: int,
    version: int,
    correlation_id: int,
) -> None:
    broker.produce.handle(connection, frame, position, end, version, correlation_id)


def repeat_handler(broker: ProduceServices) -> HandleRepeat:
    """Return the handler of frames that equal an earlier Produce request but for the records."""
    return broker.produce.handle_repeat

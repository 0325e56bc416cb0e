"""Hooks of the clients for telemetry. `headrace.otel` implements them; without telemetry none of them is called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from headrace.client.errors import ClientError
    from headrace.client.types import ConsumerRecord, RecordMetadata

Headers = Sequence[tuple[str, bytes | None]]


class SendObserver(Protocol):
    """Observes one record being sent; exactly one of `ended` and `failed` is called."""

    headers: Headers
    """The headers with which the record is sent."""

    def ended(self, outcome: "RecordMetadata | ClientError") -> None:
        """Called when the record is delivered or has failed, in the same place as delivery callbacks."""

    def failed(self, error: BaseException) -> None:
        """Called when the producer did not accept the record."""


@runtime_checkable
class Telemetry(Protocol):
    def opened(self, client: Any) -> None:
        """Called when a client was created; its `metrics()` can be used from now on."""

    def closed(self, client: Any) -> None:
        """Called when the client was closed."""

    def sending(
        self,
        client_id: str,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        headers: Headers,
    ) -> SendObserver:
        """Called when a record is about to be passed to a producer."""

    def received(
        self, client_id: str, group_id: str | None, records: Sequence["ConsumerRecord"], duration_ms: float
    ) -> None:
        """Called when a poll that took that long returns these records."""

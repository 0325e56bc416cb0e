"""Hooks of the clients for telemetry. `headrace.otel` implements them; without telemetry none of them is called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from headrace.client.errors import ClientError
    from headrace.client.types import ConsumerRecord, RecordMetadata

Headers = Sequence[tuple[str, bytes | None]]


class SendObserver(Protocol):
    """One record on its way; exactly one of `ended` and `failed` is called."""

    headers: Headers
    """What the record is sent with."""

    def ended(self, outcome: "RecordMetadata | ClientError") -> None:
        """The record is delivered or given up; called where delivery callbacks are."""

    def failed(self, error: BaseException) -> None:
        """The record was not taken by the producer."""


@runtime_checkable
class Telemetry(Protocol):
    def opened(self, client: Any) -> None:
        """A client was made, whose `metrics()` can be asked for from now on."""

    def closed(self, client: Any) -> None:
        """The client was closed."""

    def sending(
        self,
        client_id: str,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        headers: Headers,
    ) -> SendObserver:
        """A record is about to be handed over to a producer."""

    def received(
        self, client_id: str, group_id: str | None, records: Sequence["ConsumerRecord"], duration_ms: float
    ) -> None:
        """A poll that took that long has these records for the application."""

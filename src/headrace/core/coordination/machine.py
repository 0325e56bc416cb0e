"""Interfaces of a coordinator: events in, records and responses out, and one `apply` for live operation and replay.

The durable state of a coordinator changes only by `apply`. A coordinator applies each record when it adds it to a
decision, so that the rest of the decision, and the next event, see it. The host of the coordinator appends the records
before the next event, and holds every response until they are committed. If the append fails, the host discards the
coordinator and builds another one from the log.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

Ticket = object
"""Identifies a request that waits for a response; the coordinator returns it with the response, unexamined."""

Record = TypeVar("Record")
RecordIn = TypeVar("RecordIn", contravariant=True)
RecordOut = TypeVar("RecordOut", covariant=True)


class Now(NamedTuple):
    """The current time: monotonic for deadlines, wall clock for times that outlive the process."""

    monotonic_ms: float
    wall_ms: int


class TicketResponse(NamedTuple):
    """The response to the request of a ticket."""

    ticket: Ticket
    response: object


class PendingProducer(NamedTuple):
    """The producer whose open transaction records belong to."""

    producer_id: int
    producer_epoch: int


class Decision(NamedTuple, Generic[RecordOut]):
    """Records to append as one batch, and responses to send when they are committed; other tickets keep waiting."""

    records: tuple[RecordOut, ...]
    responses: tuple[TicketResponse, ...]
    producer: PendingProducer | None = None
    """The producer whose transaction the records belong to, if any; they take effect when it commits."""


class RecordRefused(ValueError):
    """A key or value does not belong to this coordinator, or was written by a newer release."""


class RecordFormat(Protocol[Record]):
    """Encodes and decodes the records of a coordinator."""

    def encode(self, record: Record) -> tuple[bytes, bytes | None]:
        """Return key and value; a value of None is a tombstone."""

    def decode(self, key: bytes, value: bytes | None) -> Record | None:
        """Return the record, or None for a kind to ignore. Raises RecordRefused for a malformed record."""


class Machine(Protocol[RecordIn]):
    def apply(self, record: RecordIn) -> None: ...

    def loaded(self, now: Now) -> None:
        """Start the deadlines, after all records of the log are applied."""

    def next_deadline_ms(self) -> float | None:
        """Return when `expire` must be called next; calling it earlier does no harm."""

    def expire(self, now: Now) -> Decision[Any]:
        """Process a limited number of due deadlines; the rest is due again at once."""


@runtime_checkable
class TransactionalMachine(Protocol):
    """A coordinator whose log also contains records of producers' transactions."""

    def apply_pending(self, producer_id: int, record: Any) -> None:
        """Apply a record of an open transaction."""

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Commit or discard the pending records of the producer's transaction."""


class DecisionBuilder(Generic[Record]):
    """A decision under construction; each record is applied when it is added."""

    __slots__ = ("_apply", "_records", "_responses")

    def __init__(self, apply: Callable[[Record], None]) -> None:
        self._apply = apply
        self._records: list[Record] = []
        self._responses: list[TicketResponse] = []

    def write(self, record: Record) -> None:
        self._records.append(record)
        self._apply(record)

    def respond(self, ticket: Ticket, response: object) -> None:
        self._responses.append(TicketResponse(ticket, response))

    def decision(self, producer: PendingProducer | None = None) -> Decision[Record]:
        return Decision(tuple(self._records), tuple(self._responses), producer)

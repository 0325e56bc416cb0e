"""The shape of a coordinator's machine: events in, records and answers out, and one `apply` for life and replay.

A machine's lasting state changes only by `apply`. Deciding, it applies each record as it puts it into its decision,
so that the rest of the same decision, and the next event, see it. Whoever runs the machine appends the records before
anything else can happen and holds every answer until they are committed; if the append fails, the machine is thrown
away and another one is built from the log.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

Ticket = object
"""Stands for one who waits for an answer: the machine keeps it, gives it back with the answer, and knows no more."""

Record = TypeVar("Record")
RecordIn = TypeVar("RecordIn", contravariant=True)
RecordOut = TypeVar("RecordOut", covariant=True)


class Now(NamedTuple):
    """Deadlines are on the monotonic clock; times that outlive the process are on the wall clock."""

    monotonic_ms: float
    wall_ms: int


class Answer(NamedTuple):
    ticket: Ticket
    response: object


class Producer(NamedTuple):
    """Whose open transaction records belong to."""

    producer_id: int
    producer_epoch: int


class Decision(NamedTuple, Generic[RecordOut]):
    """Records to append as one batch, and what to tell whom once they are committed; tickets not named still wait."""

    records: tuple[RecordOut, ...]
    answers: tuple[Answer, ...]
    producer: Producer | None = None
    """The records are a part of its transaction, and count from its end on; None for records of the machine's own."""


class RecordRefused(ValueError):
    """A key or value that is not of this coordinator, or was written by a release that knows more."""


class RecordFormat(Protocol[Record]):
    """How records travel to the log and back."""

    def encode(self, record: Record) -> tuple[bytes, bytes | None]:
        """Key and value; a value of None is a tombstone."""

    def decode(self, key: bytes, value: bytes | None) -> Record | None:
        """None for a record that may be passed over; RecordRefused for one that makes no sense."""


class Machine(Protocol[RecordIn]):
    def apply(self, record: RecordIn) -> None: ...

    def loaded(self, now: Now) -> None:
        """Everything of the log is applied: from now on time counts."""

    def next_deadline_ms(self) -> float | None:
        """When `expire` has something to do; being called too early does no harm."""

    def expire(self, now: Now) -> Decision[Any]:
        """Deal with some of what is due, a bounded amount; the rest is due again at once."""


@runtime_checkable
class TransactionalMachine(Protocol):
    """A machine to whose log producers' transactions write too."""

    def apply_pending(self, producer_id: int, record: Any) -> None:
        """A record of a transaction that has not ended."""

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """The marker of its end: what it left pending counts from now on, or is forgotten."""


class Outcome(Generic[Record]):
    """A decision while it is being made: each record put in is applied at once."""

    __slots__ = ("_answers", "_apply", "_records")

    def __init__(self, apply: Callable[[Record], None]) -> None:
        self._apply = apply
        self._records: list[Record] = []
        self._answers: list[Answer] = []

    def write(self, record: Record) -> None:
        self._records.append(record)
        self._apply(record)

    def answer(self, ticket: Ticket, response: object) -> None:
        self._answers.append(Answer(ticket, response))

    def decision(self, producer: Producer | None = None) -> Decision[Record]:
        return Decision(tuple(self._records), tuple(self._answers), producer)

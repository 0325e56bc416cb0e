"""Records of a run: where each was sent, what was acknowledged, what readers saw, and the outcome of transactions."""

from enum import Enum, auto

from headrace.client.types import ConsumerRecord
from headrace.model.ids import TopicPartition
from headrace.sim.checkers.violation import Violation, require

ONE_SEQUENCE = "all readers see one sequence, and an offset never changes its value"
NO_DUPLICATES = "an idempotent producer writes each record once"
NOTHING_FOREIGN = "readers see only what was sent to that partition"
ALL_THERE = "acknowledged or shown records are readable"
ONE_OUTCOME = "a transaction has one outcome in all its partitions"
NEVER_ABORTED = "a reader of committed records sees no aborted record"


class TransactionOutcome(Enum):
    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()
    """The commit was requested, but not acknowledged: it took effect in all partitions or in none."""


class SentTransaction:
    __slots__ = ("name", "outcome", "values")

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: list[bytes] = []
        self.outcome = TransactionOutcome.OPEN

    @property
    def may_be_shown(self) -> bool:
        return self.outcome not in (TransactionOutcome.OPEN, TransactionOutcome.ABORTED)


class _Sent:
    __slots__ = ("acknowledged_at", "place", "seen_at", "transaction")

    def __init__(self, place: TopicPartition, transaction: SentTransaction | None) -> None:
        self.place = place
        self.transaction = transaction
        self.acknowledged_at: int | None = None
        self.seen_at: int | None = None


class RecordsHistory:
    """Every value is unique, so a record is known by it."""

    def __init__(self) -> None:
        self._sent: dict[bytes, _Sent] = {}
        self._at: dict[tuple[TopicPartition, int], bytes] = {}
        self.transactions: list[SentTransaction] = []
        self.acknowledged = 0

    # Producers

    def send(self, value: bytes, place: TopicPartition, transaction: SentTransaction | None = None) -> None:
        self._sent[value] = _Sent(place, transaction)
        if transaction is not None:
            transaction.values.append(value)

    def withdraw(self, value: bytes) -> None:
        """Forget a record that the client did not accept."""
        sent = self._sent.pop(value)
        if sent.transaction is not None:
            sent.transaction.values.remove(value)

    def acknowledge(self, value: bytes, offset: int) -> None:
        sent = self._sent[value]
        self._place(value, sent, offset)
        sent.acknowledged_at = offset
        self.acknowledged += 1

    def begin(self, name: str) -> SentTransaction:
        transaction = SentTransaction(name)
        self.transactions.append(transaction)
        return transaction

    # Readers

    def show(self, record: ConsumerRecord[bytes | None], *, committed_only: bool) -> None:
        place = TopicPartition(record.topic, record.partition)
        value = bytes(record.value or b"")
        sent = self._sent.get(value)
        if sent is None or sent.place != place:
            raise Violation(NOTHING_FOREIGN, f"{value!r} at {place} {record.offset}")
        self._place(value, sent, record.offset)
        sent.seen_at = record.offset
        if committed_only and sent.transaction is not None:
            require(sent.transaction.may_be_shown, NEVER_ABORTED, f"{value!r} at {place} {record.offset}")

    def _place(self, value: bytes, sent: _Sent, offset: int) -> None:
        known = self._at.setdefault((sent.place, offset), value)
        require(known == value, ONE_SEQUENCE, f"{sent.place} {offset} is {value!r} and was {known!r}")
        for other in (sent.acknowledged_at, sent.seen_at):
            require(other in (None, offset), NO_DUPLICATES, f"{value!r} is at {other} and {offset} of {sent.place}")

    # The end

    def unread(self, values: set[bytes]) -> list[bytes]:
        """Return the acknowledged values that are not among these."""
        return [value for value, sent in self._sent.items() if sent.acknowledged_at is not None and value not in values]

    def check_read(self, place: TopicPartition, values: set[bytes]) -> None:
        """Check all values of a partition that a reader found from its beginning to its end."""
        for value, sent in self._sent.items():
            if sent.place == place and (sent.acknowledged_at is not None or sent.seen_at is not None):
                require(value in values, ALL_THERE, f"{value!r} of {place} is gone")

    def check_committed(self, values: set[bytes]) -> None:
        """Check the ends of all transactions; `values` are all that a reader of committed records found."""
        for transaction in self.transactions:
            shown = [value for value in transaction.values if value in values]
            whole = len(shown) == len(transaction.values)
            if transaction.outcome is TransactionOutcome.COMMITTED:
                require(whole, ONE_OUTCOME, f"{transaction.name} was committed, but shows only {shown}")
            elif transaction.outcome is TransactionOutcome.UNKNOWN:
                require(whole or not shown, ONE_OUTCOME, f"{transaction.name} shows only {shown}")
            else:
                require(not shown, ONE_OUTCOME, f"{transaction.name} was not committed, but shows {shown}")
        for value, sent in self._sent.items():
            if sent.transaction is None and sent.acknowledged_at is not None:
                require(value in values, ALL_THERE, f"{value!r} of {sent.place} is gone")

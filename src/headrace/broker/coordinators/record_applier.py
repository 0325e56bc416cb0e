"""What a log tells a machine, record by record: read in the machine's format, passed over where it makes no sense."""

from typing import Any, Generic, TypeVar

from headrace.broker.logs import NodeLogger
from headrace.core.coordination.machine import Machine, RecordFormat, RecordRefused, TransactionalMachine
from headrace.model.ids import NO_PRODUCER_ID

REFUSED_RECORDS_TOLD = 3
"""Records of the log that make no sense are passed over; so many of them are told one by one."""

RecordT = TypeVar("RecordT")


class Applying(Generic[RecordT]):
    def __init__(
        self, machine: Machine[Any], record_format: RecordFormat[RecordT], partition: str, logger: NodeLogger
    ) -> None:
        self._machine = machine
        self._transactions = machine if isinstance(machine, TransactionalMachine) else None
        self._format = record_format
        self._partition = partition
        self._logger = logger
        self._refused_records = 0

    def record(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int) -> None:
        """One record; `producer_id` says whose transaction wrote it, if one did."""
        try:
            record = self._decoded(key, value, producer_id)
        except RecordRefused as refusal:
            self._tell_refused(offset, refusal)
            return
        if record is None:
            return
        if producer_id == NO_PRODUCER_ID:
            self._machine.apply(record)
        elif self._transactions is not None:
            self._transactions.apply_pending(producer_id, record)

    def _decoded(self, key: bytes | None, value: bytes | None, producer_id: int) -> RecordT | None:
        if key is None:
            raise RecordRefused("a record without a key")
        if producer_id != NO_PRODUCER_ID and self._transactions is None:
            raise RecordRefused("a record of a transaction, in a log that takes none")
        return self._format.decode(key, value)

    def marker(self, producer_id: int, *, commit: bool) -> None:
        if self._transactions is not None:
            self._transactions.end_transaction(producer_id, commit=commit)

    def _tell_refused(self, offset: int, refusal: RecordRefused) -> None:
        self._refused_records += 1
        if self._refused_records <= REFUSED_RECORDS_TOLD:
            self._logger.warning(
                "a record was passed over", partition=self._partition, offset=offset, reason=str(refusal)
            )

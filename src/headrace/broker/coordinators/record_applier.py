"""Applies the records of a log to a coordinator; skips and logs those that cannot be decoded."""

from typing import Any, Generic, TypeVar

from headrace.broker.logs import NodeLogger
from headrace.core.coordination.machine import Machine, RecordFormat, RecordRefused, TransactionalMachine
from headrace.model.ids import NO_PRODUCER_ID

SKIPPED_RECORDS_LOGGED = 3
"""Skipped records of one partition that the broker logs one by one."""

RecordT = TypeVar("RecordT")


class RecordApplier(Generic[RecordT]):
    def __init__(
        self, machine: Machine[Any], record_format: RecordFormat[RecordT], partition: str, logger: NodeLogger
    ) -> None:
        self._machine = machine
        self._transactions = machine if isinstance(machine, TransactionalMachine) else None
        self._format = record_format
        self._partition = partition
        self._logger = logger
        self._skipped_records = 0

    def record(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int) -> None:
        """Apply one record; `producer_id` is set if a transaction of that producer wrote it."""
        try:
            record = self._decoded(key, value, producer_id)
        except RecordRefused as refusal:
            self._log_skipped(offset, refusal)
            return
        if record is None:
            return
        if producer_id == NO_PRODUCER_ID:
            self._machine.apply(record)
        elif self._transactions is not None:
            self._transactions.apply_pending(producer_id, record)

    def _decoded(self, key: bytes | None, value: bytes | None, producer_id: int) -> RecordT | None:
        if key is None:
            raise RecordRefused("the record has no key")
        if producer_id != NO_PRODUCER_ID and self._transactions is None:
            raise RecordRefused("the record belongs to a transaction, and this log has no transactional records")
        return self._format.decode(key, value)

    def marker(self, producer_id: int, *, commit: bool) -> None:
        if self._transactions is not None:
            self._transactions.end_transaction(producer_id, commit=commit)

    def _log_skipped(self, offset: int, refusal: RecordRefused) -> None:
        self._skipped_records += 1
        if self._skipped_records <= SKIPPED_RECORDS_LOGGED:
            self._logger.warning("record skipped", partition=self._partition, offset=offset, reason=str(refusal))

"""The state behind one partition of `__transaction_state`: transactional ids, owners of batches, and the uptime.

The state changes only by `apply`, in a live coordinator and in a replay alike.
"""

from collections.abc import Callable

from headrace.core.coordination.machine import Decision, DecisionBuilder, Now
from headrace.core.coordination.uptime import Uptime
from headrace.core.transactions.owner_records import Owner, OwnerRecord
from headrace.core.transactions.pools import Pools
from headrace.core.transactions.records import CoordinatorRecord, TransactionMetadata, TransactionRecord, UptimeRecord
from headrace.core.transactions.states import TransactionState

TransactionDecision = Decision[CoordinatorRecord]
TransactionDecisionBuilder = DecisionBuilder[CoordinatorRecord]

_ONGOING = TransactionState.ONGOING


class TransactionTables:
    def __init__(self, metadata_offset: Callable[[], int]) -> None:
        self._metadata_offset = metadata_offset
        self.transactions: dict[str, TransactionMetadata] = {}
        self.owners: dict[str, Owner] = {}
        self.pools = Pools()
        """The transactional ids of each owner; they follow from the transactions."""
        self.uptime = Uptime()

    def begin_decision(self) -> TransactionDecisionBuilder:
        """Return an empty decision; each record written to it is applied at once."""
        return DecisionBuilder(self.apply)

    def apply(self, record: CoordinatorRecord) -> None:
        if isinstance(record, UptimeRecord):
            self.uptime.replayed(record.uptime_ms)
        elif isinstance(record, OwnerRecord):
            self._apply_owner(record)
        else:
            self._apply_transaction(record)

    def _apply_owner(self, record: OwnerRecord) -> None:
        if record.owner is None:
            self.owners.pop(record.name, None)
        else:
            self.owners[record.name] = record.owner
            self.uptime.replayed(record.owner.updated_uptime_ms)

    def _apply_transaction(self, record: TransactionRecord) -> None:
        transactional_id, after = record
        self.pools.follow(transactional_id, self.transactions.get(transactional_id), after)
        if after is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = after
            self.uptime.replayed(after.updated_uptime_ms)

    def write(
        self, out: TransactionDecisionBuilder, transactional_id: str, transaction: TransactionMetadata, now: Now
    ) -> None:
        """Write the transaction's record with the current uptime and metadata offset."""
        uptime_ms = self.uptime.at(now)
        before = self.transactions.get(transactional_id)
        began = transaction.state is _ONGOING and (before is None or before.state is not _ONGOING)
        started_ms = uptime_ms if began else transaction.started_uptime_ms
        metadata_offset = max(transaction.metadata_offset, self._metadata_offset()) if transaction.partitions else 0
        stamped = transaction._replace(
            updated_uptime_ms=uptime_ms, started_uptime_ms=started_ms, metadata_offset=metadata_offset
        )
        out.write(TransactionRecord(transactional_id, stamped))

    def write_owner(self, out: TransactionDecisionBuilder, name: str, owner: Owner, now: Now) -> None:
        """Write the owner's record with the current uptime."""
        out.write(OwnerRecord(name, owner._replace(updated_uptime_ms=self.uptime.at(now))))

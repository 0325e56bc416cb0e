"""A transaction as a `with` block: committed at its end, aborted by an exception."""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headrace.client.consumer_base import Place, as_offsets
from headrace.client.errors import ClientError, InvalidArgument
from headrace.client.types import GroupIdentity, OffsetAndMetadata, PreparedTransaction

if TYPE_CHECKING:
    from headrace.client.blocking.producer import Producer


class Transaction:
    """A transaction, whose records become visible to read_committed consumers together or not at all."""

    def __init__(self, producer: "Producer") -> None:
        self._producer = producer
        self._is_open = True

    def commit_offsets(self, offsets: Mapping[Place, int | OffsetAndMetadata], group: GroupIdentity | str) -> None:
        """Commit these offsets of a group with the transaction; pass `consumer.group_identity()`."""
        self._check_open()
        identity = GroupIdentity(group) if isinstance(group, str) else group
        self._producer.add_transaction_offsets(as_offsets(offsets), identity)

    def commit(self) -> None:
        """Commit before the end of the block; no further record can be sent in it."""
        self._check_open()
        self._producer.end_transaction(commit=True)
        self._is_open = False

    def abort(self) -> None:
        self._check_open()
        try:
            self._producer.end_transaction(commit=False)
        except ClientError as error:
            if not isinstance(error, InvalidArgument):  # a refused call leaves the transaction as it is
                self._is_open = False
            raise
        self._is_open = False

    def hand_over(self) -> PreparedTransaction:
        """Deliver all records and leave the end to `Admin.end_transaction`; the producer can then only be closed."""
        self._check_open()
        prepared = self._producer.hand_over_transaction()
        self._is_open = False
        return prepared

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidArgument("this transaction has ended: begin another with `producer.transaction()`")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._is_open:
            return
        try:
            if error is None:
                self.commit()
        finally:
            if self._is_open:
                self._is_open = False
                self._producer.give_up_transaction()

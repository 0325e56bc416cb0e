"""The delivery of a record, for threads that wait for it."""

import logging
import os
import threading
from collections.abc import Callable
from functools import partial

from headrace.client.core.produced_batches import ProducedBatch
from headrace.client.delivery_base import DeliveryBase
from headrace.client.errors import ClientClosed, DeadlineExceeded, InvalidArgument
from headrace.client.timeouts import named_timeout
from headrace.client.types import RecordMetadata

FORKED = "a producer does not survive a fork: create one in each process, after the fork"

logger = logging.getLogger("headrace.client")


class ChangeCondition(threading.Condition):
    """A condition that is notified when anything in a producer may have changed; the notifying thread cannot wait for
    it.
    """

    def __init__(self, lock: threading.RLock) -> None:
        super().__init__(lock)
        self.teller: threading.Thread | None = None
        self._process_id = os.getpid()

    def __enter__(self) -> bool:
        """Acquire the lock; in a forked child it may never be released, because only the producer's thread could do
        that.
        """
        if os.getpid() != self._process_id:
            raise ClientClosed(FORKED)
        return super().__enter__()

    def wait(self, timeout: float | None = None) -> bool:
        self.refuse_callbacks("wait for its producer")
        return super().wait(timeout)

    def refuse_callbacks(self, wish: str) -> None:
        """Refuse blocking calls from delivery callbacks, which run in the thread that does all the producer's work."""
        if threading.current_thread() is self.teller:
            raise InvalidArgument(
                f"a delivery callback cannot {wish}: it runs in the producer's own thread, which would wait "
                "for itself; return from the callback and do that in another thread"
            )


class Delivery(DeliveryBase):
    """The delivery of one record: its offset, once the broker has acknowledged it."""

    __slots__ = ("_changed",)

    def __init__(self, changed: ChangeCondition, batch: ProducedBatch, place: int, timestamp: int) -> None:
        self._changed = changed
        self._batch = batch
        self._place = place
        self._timestamp = timestamp

    @named_timeout
    def result(self, *, timeout_ms: float | None = None) -> RecordMetadata:
        """Return the record's offset; raises its error, or `DeadlineExceeded` if the result is not known in time."""
        batch = self._batch
        if not batch.is_done:
            with self._changed:
                self._changed.wait_for(lambda: batch.is_done, None if timeout_ms is None else timeout_ms / 1000)
        if not batch.is_done:
            raise DeadlineExceeded(
                f"the record for {batch.partition} is not delivered yet after "
                f"{timeout_ms:g} ms; wait longer, or check that its leader is running"
            )
        return self._where()

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Call the callback in the producer's own thread when the record is delivered or has failed: it must not
        block.
        """
        with self._changed:
            if self._await_end(partial(self._tell, callback)):
                return
        self._tell(callback)

    def _tell(self, callback: "Callable[[Delivery], object]") -> None:
        try:
            super()._tell(callback)
        except SystemExit:
            logger.exception("a delivery callback cannot end the program: it runs in the producer's own thread")

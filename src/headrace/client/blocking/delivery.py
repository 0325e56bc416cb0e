"""What became of a record that was handed over."""

import logging
import threading
from collections.abc import Callable

from headrace.client.core.produced_batches import ProducedBatch
from headrace.client.errors import ClientError, DeadlineExceeded
from headrace.client.producing import delivered
from headrace.client.types import RecordMetadata

logger = logging.getLogger("headrace.client")


class Delivery:
    """The promise of one record: where it is, once its broker said so."""

    __slots__ = ("_batch", "_changed", "_place", "_timestamp")

    def __init__(self, changed: threading.Condition, batch: ProducedBatch, place: int, timestamp: int) -> None:
        self._changed = changed
        self._batch = batch
        self._place = place
        self._timestamp = timestamp

    def done(self) -> bool:
        return self._batch.is_done

    def error(self) -> ClientError | None:
        """Why the record is nowhere, if that is known."""
        return self._batch.error

    def result(self, timeout_ms: float | None = None) -> RecordMetadata:
        """Where the record is; raises why it is nowhere, or `DeadlineExceeded` if that is not known in time."""
        batch = self._batch
        if not batch.is_done:
            with self._changed:
                self._changed.wait_for(lambda: batch.is_done, None if timeout_ms is None else timeout_ms / 1000)
        if not batch.is_done:
            raise DeadlineExceeded(f"the record for {batch.partition} is still on its way after {timeout_ms:g} ms")
        return delivered(batch, self._place, self._timestamp)

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Call it when the record is delivered or given up, in the producer's own thread: it must not wait."""

        def tell() -> None:
            try:
                callback(self)
            except Exception:
                logger.exception("a delivery callback failed")

        with self._changed:
            if not self._batch.is_done:
                if self._batch.callbacks is None:
                    self._batch.callbacks = []
                self._batch.callbacks.append(tell)
                return
        tell()

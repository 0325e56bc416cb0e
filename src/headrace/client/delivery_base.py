"""Common part of the deliveries of all fronts: the state of a record, its offset and its callbacks."""

import logging
from collections.abc import Callable
from typing import Self

from headrace.client.core.produced_batches import ProducedBatch
from headrace.client.errors import ClientError
from headrace.client.types import RecordMetadata

logger = logging.getLogger("headrace.client")


class DeliveryBase:
    """The delivery of one record at some index of a batch."""

    __slots__ = ("_batch", "_place", "_timestamp")

    def __init__(self, batch: ProducedBatch, place: int, timestamp: int) -> None:
        self._batch = batch
        self._place = place
        self._timestamp = timestamp

    def __repr__(self) -> str:
        batch = self._batch
        if not batch.is_done:
            became = "not delivered yet"
        else:
            became = f"at offset {self._where().offset}" if batch.error is None else f"given up, {batch.error!r}"
        return f"<{type(self).__name__} for {batch.partition}: {became}>"

    def done(self) -> bool:
        return self._batch.is_done

    def error(self) -> ClientError | None:
        """Return why the record failed, if known."""
        self._batch.is_told = self._batch.is_done
        return self._batch.error

    def outcome(self) -> RecordMetadata | ClientError:
        """Return the record's offset or its error, for telemetry: the error does not count as read by the
        application.
        """
        return self._batch.error if self._batch.error is not None else self._where()

    def _where(self) -> RecordMetadata:
        """Return the record's offset; raises its error."""
        return delivered(self._batch, self._place, self._timestamp)

    def _await_end(self, ended: Callable[[], None]) -> bool:
        """Call the function when the record is delivered or has failed; return False if it already has."""
        batch = self._batch
        if batch.is_done:
            return False
        if batch.callbacks is None:
            batch.callbacks = []
        batch.callbacks.append(ended)
        return True

    def _tell(self, callback: Callable[[Self], object]) -> None:
        try:
            callback(self)
        except Exception:
            logger.exception("a delivery callback failed")


def delivered(batch: ProducedBatch, place: int, timestamp: int) -> RecordMetadata:
    """Return the offset of the record at that index of a batch; raises its error."""
    if batch.error is not None:
        batch.is_told = True
        raise batch.error
    return RecordMetadata(
        batch.partition.topic,
        batch.partition.partition,
        batch.base_offset + place if batch.base_offset >= 0 else -1,
        batch.log_append_time_ms if batch.log_append_time_ms >= 0 else timestamp,
    )

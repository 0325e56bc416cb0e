"""The demands of a topic's configs on the records in a batch, and the batch in the form that the topic stores.

A compacted topic takes only records with a key. `headrace.validate.records` says how thoroughly records are checked. A
topic with a `compression.type` of its own stores every batch under that codec. The loop does this for batches that take
little time. For the others a helper does it before the append (`broker.produce.record_hold`), and its results come with
the request as `PreparedRecords`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from headrace.broker.partitions.append_result import RejectedBatch
from headrace.broker.partitions.codecs import STORED_CODECS, Stored, stored_on_loop
from headrace.broker.partitions.keys import Keyless, keyless_on_loop
from headrace.broker.partitions.soundness import (
    Validation,
    must_walk,
    records_error_on_loop,
    validation_of,
    walk_free_bytes,
)
from headrace.model.configs.values import TopicConfig
from headrace.model.errors import ErrorCode
from headrace.wire.compiled import has_request_helper
from headrace.wire.records.header import HeaderFields

_NONE = ErrorCode.NONE


class PreparedRecords(NamedTuple):
    """The results of a helper for one record set."""

    keyless: Keyless | None
    """Indexes of the records without a key, or the error of unreadable records; None if keys were not checked."""
    codec: int | None
    """The codec of `stored`."""
    stored: Stored | None
    """The batch under `codec`, or the error that prevented it; None if it was not recompressed."""
    records_error: ErrorCode | None = None
    """The result of a walk over the records, NONE if they are sound; None if they were not walked."""


NOTHING_PREPARED: Mapping[int, PreparedRecords] = MappingProxyType({})


class RecordRules:
    """The rules of one topic config. Immutable: a changed config makes another object."""

    __slots__ = (
        "checks_records",
        "codec",
        "message_bytes_max",
        "needs_keys",
        "takes_plain",
        "validation",
        "walk_free_bytes",
    )

    def __init__(self, config: TopicConfig) -> None:
        self.message_bytes_max = config.message_bytes_max
        self.needs_keys = config.cleanup_compact
        self.codec = STORED_CODECS.get(config.compression_type)
        """The codec that batches are stored under; None to keep the producer's choice."""
        self.validation = validation_of(config.validate_records)
        """The checks on its batches. Where `read_repeat` is compiled, it has walked the uncompressed ones already."""
        self.walk_free_bytes = walk_free_bytes(self.validation)
        self.checks_records = self.needs_keys or self.validation is not Validation.HEADER
        """True if `rejection` can find anything."""
        self.takes_plain = (
            self.codec is None
            and not (config.log_append_time or config.cleanup_compact)
            and (
                self.validation is Validation.HEADER or (self.validation is not Validation.ALL and has_request_helper())
            )
        )
        """True if batches are stored as they arrive once `read_repeat` has found them plain."""

    def rejection(
        self, batch: memoryview, fields: HeaderFields, prepared: PreparedRecords | None
    ) -> RejectedBatch | None:
        """Check the records; None if they are in order. Raise InflationLimit if that takes too long for the loop."""
        if must_walk(self.validation, fields):
            error = prepared.records_error if prepared is not None else None
            if error is None:
                error = records_error_on_loop(batch, fields)
            if error is not _NONE:
                return RejectedBatch(error)
        if self.needs_keys:
            keyless = prepared.keyless if prepared is not None else None
            if keyless is None:
                keyless = keyless_on_loop(batch, self.message_bytes_max)
            if keyless:
                return RejectedBatch(ErrorCode.INVALID_RECORD, keyless if isinstance(keyless, list) else [])
        return None

    def stored(self, batch: memoryview, fields: HeaderFields, prepared: PreparedRecords | None) -> Stored:
        """Recompress the batch; raise InflationLimit if that takes too long for the loop.

        The work of a helper is used only if the codec is still the one that the helper was given.
        """
        codec = self.codec
        assert codec is not None
        if prepared is not None and prepared.stored is not None and prepared.codec == codec:
            return prepared.stored
        return stored_on_loop(batch, fields, codec, self.message_bytes_max)

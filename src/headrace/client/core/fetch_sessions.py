"""Fetch sessions (KIP-227): a request names only what changed since the last one.

There is one session per node. A broker that has none, has forgotten it or expects another epoch returns an error, and
the next request names everything again.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicPartition

NO_SESSION = 0
FULL_EPOCH = 0
"""The request names everything; the named session is closed, and a new one is requested."""

FINAL_EPOCH = -1
"""The named session is closed, and no new one is requested."""

EPOCH_MAX = 2**31 - 1

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class FetchPosition(NamedTuple):
    """The fetch position of one partition."""

    topic_id: bytes
    leader_epoch: int
    offset: int
    bytes_max: int


class Plan(NamedTuple):
    session_id: int
    epoch: int
    named: Mapping[TopicPartition, FetchPosition]
    forgotten: Mapping[TopicPartition, bytes]
    """Topic ids of partitions that are not fetched for now."""

    @property
    def is_incremental(self) -> bool:
        return self.epoch > FULL_EPOCH

    @property
    def needs_session(self) -> bool:
        """Return whether the request is meaningless to a broker without fetch sessions."""
        return self.epoch != FULL_EPOCH and self.session_id != NO_SESSION


class ClientFetchSession:
    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = FULL_EPOCH
        self._partitions: dict[TopicPartition, FetchPosition] = {}
        """The partitions in the broker's session once the request in flight has arrived."""

    def plan(self, wanted: Mapping[TopicPartition, FetchPosition]) -> Plan:
        """Plan the next request, for exactly these partitions; it counts as in flight from now on."""
        known = self._partitions
        if self._epoch != FULL_EPOCH and not _continues(known, wanted):
            self._epoch = FULL_EPOCH
        self._partitions = dict(wanted)
        if self._epoch == FULL_EPOCH:
            return Plan(self._session_id, FULL_EPOCH, wanted, {})
        named = {place: asked for place, asked in wanted.items() if known.get(place) != asked}
        forgotten = {place: asked.topic_id for place, asked in known.items() if place not in wanted}
        return Plan(self._session_id, self._epoch, named, forgotten)

    def answered(self, plan: Plan, reply: Any) -> None:
        """Apply a response. A broker without room for another session returns none, and is asked again with every
        request.
        """
        if reply.error_code:
            self._session_id, self._epoch = NO_SESSION, FULL_EPOCH
        elif not plan.is_incremental:
            self._session_id = reply.session_id
            self._epoch = 1 if reply.session_id != NO_SESSION else FULL_EPOCH
        else:
            self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def broken(self) -> None:
        """Note that it is unknown whether the last request arrived."""
        self._epoch = FULL_EPOCH

    def closing(self) -> Plan | None:
        """Return the last request, which lets the broker drop the session; None if there is no session."""
        return Plan(self._session_id, FINAL_EPOCH, {}, {}) if self._session_id != NO_SESSION else None


def _continues(known: Mapping[TopicPartition, FetchPosition], wanted: Mapping[TopicPartition, FetchPosition]) -> bool:
    """Return whether the session fits: it names topics either by id or by name, and a recreated topic is another
    one.
    """
    if _has_ids(known) != _has_ids(wanted):
        return False
    return all(place not in known or known[place].topic_id == asked.topic_id for place, asked in wanted.items())


def _has_ids(partitions: Mapping[TopicPartition, FetchPosition]) -> bool:
    return all(asked.topic_id != NO_TOPIC_ID for asked in partitions.values())

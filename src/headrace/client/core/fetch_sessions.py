"""What a broker remembers of our fetches (KIP-227), so that a request names only what changed since the last one.

One session for each node. A broker that has none, has forgotten ours or has counted differently says so, and the next
request names everything again.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicPartition

NO_SESSION = 0
FULL_EPOCH = 0
"""The request names everything; the session it names is closed, and a new one is asked for."""

FINAL_EPOCH = -1
"""The session that is named is closed, and no other one is asked for."""

EPOCH_MAX = 2**31 - 1

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class Asked(NamedTuple):
    """What is asked of one partition."""

    topic_id: bytes
    leader_epoch: int
    offset: int
    bytes_max: int


class Plan(NamedTuple):
    session_id: int
    epoch: int
    named: Mapping[TopicPartition, Asked]
    forgotten: Mapping[TopicPartition, bytes]
    """Topic ids of the partitions that are not read for now."""

    @property
    def is_incremental(self) -> bool:
        return self.epoch > FULL_EPOCH

    @property
    def needs_session(self) -> bool:
        """Whether it says nothing to a broker that knows no sessions."""
        return self.epoch != FULL_EPOCH and self.session_id != NO_SESSION


class FetchSession:
    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = FULL_EPOCH
        self._partitions: dict[TopicPartition, Asked] = {}
        """What the broker will know, once the request on its way has arrived."""

    def plan(self, wanted: Mapping[TopicPartition, Asked]) -> Plan:
        """The next request, for exactly these partitions; it is on its way from now on."""
        known = self._partitions
        if self._epoch != FULL_EPOCH and not _can_go_on(known, wanted):
            self._epoch = FULL_EPOCH
        self._partitions = dict(wanted)
        if self._epoch == FULL_EPOCH:
            return Plan(self._session_id, FULL_EPOCH, wanted, {})
        named = {place: asked for place, asked in wanted.items() if known.get(place) != asked}
        forgotten = {place: asked.topic_id for place, asked in known.items() if place not in wanted}
        return Plan(self._session_id, self._epoch, named, forgotten)

    def answered(self, plan: Plan, reply: Any) -> None:
        """A broker without room for another session gives none, and is asked for one with every request."""
        if reply.error_code:
            self._session_id, self._epoch = NO_SESSION, FULL_EPOCH
        elif not plan.is_incremental:
            self._session_id = reply.session_id
            self._epoch = 1 if reply.session_id != NO_SESSION else FULL_EPOCH
        else:
            self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def broken(self) -> None:
        """Nobody knows whether the last request arrived."""
        self._epoch = FULL_EPOCH

    def closing(self) -> Plan | None:
        """The last request, after which the broker has its memory back; None if it gave no session."""
        return Plan(self._session_id, FINAL_EPOCH, {}, {}) if self._session_id != NO_SESSION else None


def _can_go_on(known: Mapping[TopicPartition, Asked], wanted: Mapping[TopicPartition, Asked]) -> bool:
    """A session names topics either by their ids or by their names, and a topic that was made anew is another one."""
    if _has_ids(known) != _has_ids(wanted):
        return False
    return all(place not in known or known[place].topic_id == asked.topic_id for place, asked in wanted.items())


def _has_ids(partitions: Mapping[TopicPartition, Asked]) -> bool:
    return all(asked.topic_id != NO_TOPIC_ID for asked in partitions.values())

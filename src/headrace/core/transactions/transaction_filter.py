"""The filter of ListTransactions: states, producer ids, duration and a pattern."""

from collections.abc import Iterable
from string import punctuation

from headrace.core.groups.topic_patterns import NamePattern
from headrace.core.transactions.commands import TransactionListing
from headrace.core.transactions.states import TransactionState


class TransactionFilter:
    """Selects transactions. None matches everything; a pattern that is wrong or too costly raises PatternRefused."""

    def __init__(
        self,
        *,
        states: frozenset[TransactionState] | None,
        producer_ids: frozenset[int] | None,
        duration_ms: int | None,
        pattern: str | None,
    ) -> None:
        self._states = states
        self._producer_ids = producer_ids
        self._duration_ms = duration_ms
        self._pattern = None if pattern is None else NamePattern(pattern, more_letters=punctuation + " ")

    def of(self, listed: Iterable[TransactionListing], now_ms: int) -> list[TransactionListing]:
        """Return the transactions that match."""
        found = [each for each in listed if self._matches(each, now_ms)]
        if self._pattern is None:
            return found
        matching = set(self._pattern.matching(each.transactional_id for each in found))
        return [each for each in found if each.transactional_id in matching]

    def _matches(self, listed: TransactionListing, now_ms: int) -> bool:
        if self._states is not None and listed.state not in self._states:
            return False
        if self._producer_ids is not None and listed.producer_id not in self._producer_ids:
            return False
        return self._duration_ms is None or now_ms - listed.started_at_ms > self._duration_ms

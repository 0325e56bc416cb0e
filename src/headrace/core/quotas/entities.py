"""Entities that have quotas, and which quota holds for a user and client id.

An entity names a user, a client id, both, or an address. Instead of a name it may have the default, which stands for
every name that has no quota of its own.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)

PRODUCE_RATE = "producer_byte_rate"
FETCH_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
MUTATION_RATE = "controller_mutation_rate"
CONNECTION_RATE = "connection_creation_rate"

CLIENT_KEYS = (PRODUCE_RATE, FETCH_RATE, REQUEST_PERCENTAGE, MUTATION_RATE)
"""Quotas of users and client ids."""
IP_KEYS = (CONNECTION_RATE,)
"""Quotas of addresses."""

Entity = tuple[tuple[str, str | None], ...]
"""Types of entity and their names, sorted by type; the name None is the default."""

QuotaTable = Mapping[Entity, Mapping[str, float]]
"""Quotas by entity and key."""


class ChosenQuota(NamedTuple):
    limit: float
    user: str | None
    """The user whose requests share this quota; None if requests of all users do."""
    client_id: str | None
    """The client id whose requests share this quota; None if those of all client ids do."""


def entity_of(names: Mapping[str, str | None]) -> Entity:
    return tuple(sorted(names.items()))


def quota_of_client(quotas: QuotaTable, key: str, user: str, client_id: str) -> ChosenQuota | None:
    """Return the most specific quota: first those of user and client id, then of the user, last of the client id."""
    for entity, by_user, by_client_id in _candidates(user, client_id):
        limit = quotas.get(entity, _NOTHING).get(key)
        if limit is not None:
            return ChosenQuota(limit, user if by_user else None, client_id if by_client_id else None)
    return None


def quota_of_address(quotas: QuotaTable, address: str) -> float | None:
    """Return the most connections per second that this address may open; None if there is no limit."""
    for name in (address, None):
        limit = quotas.get(((IP, name),), _NOTHING).get(CONNECTION_RATE)
        if limit is not None:
            return limit
    return None


_NOTHING: Mapping[str, float] = {}


def _candidates(user: str, client_id: str) -> Iterator[tuple[Entity, bool, bool]]:
    """Yield entities, the most specific first, and whether users and client ids have buckets of their own there."""
    for user_name in (user, None):
        for client_name in (client_id, None):
            yield ((CLIENT_ID, client_name), (USER, user_name)), True, True
        yield ((USER, user_name),), True, False
    for client_name in (client_id, None):
        yield ((CLIENT_ID, client_name),), False, True

"""Decide on quotas: set and remove those of users, client ids and addresses (AlterClientQuotas, KIP-546)."""

from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from math import isfinite
from typing import NamedTuple

from headrace.core.controller.commands import ControllerDecision, Refused
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import ACCESS_LEVEL, METADATA_VERSION, ClientQuotaRecord, Record
from headrace.core.quotas.entities import (
    CLIENT_ID,
    CLIENT_KEYS,
    CONNECTION_RATE,
    ENTITY_TYPES,
    FETCH_RATE,
    IP,
    IP_KEYS,
    PRODUCE_RATE,
    USER,
    Entity,
    entity_of,
)
from headrace.model.errors import ErrorCode
from headrace.model.limits import CLIENT_ID_KEPT_BYTES_MAX

ENTITIES_PER_REQUEST_MAX = 1_000
ENTITIES_MAX = 100_000
"""Entities of the cluster that have quotas."""
NAME_LENGTH_MAX = 1_000
"""Characters of the name of an entity."""

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
_WHOLE_NUMBERS_MAX = {PRODUCE_RATE: INT64_MAX, FETCH_RATE: INT64_MAX, CONNECTION_RATE: INT32_MAX}
"""The highest value of the keys whose values are whole numbers."""
_FRACTION_MAX = 1e-6
"""The part of a number beyond the point up to which it counts as whole."""


class QuotaChange(NamedTuple):
    key: str
    value: float | None
    """None removes the quota."""


class QuotaAlteration(NamedTuple):
    """The changes of one entity; they are made together or not at all."""

    entity: tuple[tuple[str, str | None], ...]
    """As the request has it: in any order, and perhaps with a type more than once."""
    changes: tuple[QuotaChange, ...]


class QuotaResult(NamedTuple):
    entity: tuple[tuple[str, str | None], ...]
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def alter_quotas(
    image: MetadataImage, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
) -> ControllerDecision[tuple[QuotaResult, ...]]:
    """Give each entity one result; an entity with an error keeps all quotas."""
    records: list[Record] = []
    results: list[QuotaResult] = []
    known = dict.fromkeys(image.client_quotas)
    repeated = Counter(tuple(sorted(alteration.entity, key=_in_order)) for alteration in alterations)
    for alteration in alterations:
        try:
            _check_request(image, len(alterations))
            entity = _checked_entity(alteration.entity)
            if repeated[entity] > 1:
                raise _invalid("the entity is listed more than once")
            if entity not in known and len(known) >= ENTITIES_MAX:
                raise Refused(
                    ErrorCode.POLICY_VIOLATION, f"at most {ENTITIES_MAX} entities of a cluster may have quotas"
                )
            records += _records(image, entity, alteration.changes)
            known[entity] = None
        except Refused as refusal:
            results.append(QuotaResult(alteration.entity, refusal.code, refusal.message))
        else:
            results.append(QuotaResult(alteration.entity))
    return ControllerDecision(() if validate_only else tuple(records), tuple(results))


def _in_order(part: tuple[str, str | None]) -> tuple[str, str]:
    return part[0], part[1] or ""


def _check_request(image: MetadataImage, count: int) -> None:
    if count > ENTITIES_PER_REQUEST_MAX:
        raise Refused(
            ErrorCode.POLICY_VIOLATION,
            f"one request may change the quotas of at most {ENTITIES_PER_REQUEST_MAX} entities: send several requests",
        )
    if image.metadata_version < ACCESS_LEVEL:
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION,
            f"quotas need {METADATA_VERSION} {ACCESS_LEVEL}, the cluster is at {image.metadata_version}: raise it by "
            "headrace cluster features",
        )


def _checked_entity(parts: Sequence[tuple[str, str | None]]) -> Entity:
    if not parts:
        raise _invalid("an entity names a user, a client id, both, or an address")
    names = dict(parts)
    if len(names) < len(parts):
        raise _invalid("the entity has a type more than once")
    for kind, name in names.items():
        if kind not in ENTITY_TYPES:
            raise _invalid(f'"{kind[:40]}" is no type of entity: use {", ".join(ENTITY_TYPES)}')
        if name == "":
            raise _invalid(f"the {kind} is empty: give a name, or none for the default")
        if name is not None and len(name) > NAME_LENGTH_MAX:
            raise _invalid(f"a name has at most {NAME_LENGTH_MAX} characters")
        if kind == CLIENT_ID and name is not None and len(name.encode()) > CLIENT_ID_KEPT_BYTES_MAX:
            raise _invalid(f"a client id with quotas has at most {CLIENT_ID_KEPT_BYTES_MAX} bytes")
    if IP in names:
        if len(names) > 1:
            raise _invalid(f"quotas of an {IP} cannot be combined with a {USER} or a {CLIENT_ID}")
        names[IP] = _checked_address(names[IP])
    return entity_of(names)


def _checked_address(address: str | None) -> str | None:
    if address is None:
        return None
    try:
        return str(ip_address(address))
    except ValueError:
        raise _invalid(f'"{address[:60]}" is no IP address') from None


def _records(image: MetadataImage, entity: Entity, changes: Sequence[QuotaChange]) -> list[Record]:
    current = image.client_quotas.get(entity, {})
    if len({change.key for change in changes}) < len(changes):
        raise _invalid("a quota of the entity is listed more than once")
    records: list[Record] = []
    for key, value in changes:
        if value is not None:
            _check_value(entity, key, value)
        if value != current.get(key):
            records.append(ClientQuotaRecord(entity, key, value))
    return records


def _check_value(entity: Entity, key: str, value: float) -> None:
    keys = IP_KEYS if entity[0][0] == IP else CLIENT_KEYS
    if key not in keys:
        raise _invalid(f'"{key[:60]}" is no quota of this entity: use {", ".join(keys)}')
    if not isfinite(value) or value <= 0:
        raise _invalid(f"{key} must be greater than 0: to allow nothing, use access rules")
    whole_max = _WHOLE_NUMBERS_MAX.get(key)
    if whole_max is None:
        return
    if value > whole_max:
        raise _invalid(f"{key} is at most {whole_max}")
    if abs(value - round(value)) > _FRACTION_MAX:
        raise _invalid(f"{key} must be a whole number")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)

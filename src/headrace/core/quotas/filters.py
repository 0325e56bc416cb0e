"""Filters of DescribeClientQuotas: for each type of entity a name, the default, or any name."""

from collections.abc import Sequence
from typing import NamedTuple

from headrace.core.quotas.entities import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity
from headrace.model.errors import ErrorCode

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
"""The match types of the wire: this name, the default, any name and the default."""


class FilterRefused(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class FilterPart(NamedTuple):
    kind: str
    match_type: int
    name: str | None


class EntityFilter(NamedTuple):
    parts: tuple[FilterPart, ...]
    is_strict: bool
    """True if entities with further types do not match."""

    @classmethod
    def checked(cls, parts: Sequence[FilterPart], *, is_strict: bool) -> "EntityFilter":
        """Raise FilterRefused if there can be no such entity."""
        for part in parts:
            _check(part)
        kinds = {part.kind for part in parts}
        if len(kinds) < len(parts):
            raise _invalid("the filter has a type of entity more than once")
        if IP in kinds and len(kinds) > 1:
            raise _invalid(f"a filter of {IP} cannot be combined with a {USER} or a {CLIENT_ID}")
        return cls(tuple(parts), is_strict)

    def matches(self, entity: Entity) -> bool:
        if self.is_strict and len(entity) != len(self.parts):
            return False
        names = dict(entity)
        return all(
            part.kind in names and (part.match_type == SPECIFIED or names[part.kind] == part.name)
            for part in self.parts
        )


def _check(part: FilterPart) -> None:
    if not part.kind:
        raise _invalid("a type of entity is empty")
    if part.kind not in ENTITY_TYPES:
        raise FilterRefused(
            ErrorCode.UNSUPPORTED_VERSION, f'"{part.kind[:40]}" is no type of entity: use {", ".join(ENTITY_TYPES)}'
        )
    if part.match_type not in (EXACT, DEFAULT, SPECIFIED):
        raise _invalid(f"match type {part.match_type} is unknown: use {EXACT}, {DEFAULT} or {SPECIFIED}")
    if part.match_type == EXACT and part.name is None:
        raise _invalid("an exact match needs a name")
    if part.match_type != EXACT and part.name is not None:
        raise _invalid("only an exact match has a name")


def _invalid(message: str) -> FilterRefused:
    return FilterRefused(ErrorCode.INVALID_REQUEST, message)

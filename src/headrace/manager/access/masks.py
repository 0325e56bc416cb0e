"""Masks: parts of records that users below a role do not see, on any way out of the manager.

A mask is applied to the bytes of a record before anything else looks at it: filters, text search, sizes and views know
the masked record alone, so that nothing can be guessed by asking.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, delete, func, insert, select

from headrace.client.types import ConsumerRecord
from headrace.manager.access.roles import ROLES, UserRole
from headrace.manager.catalog.errors import NotInCatalog
from headrace.manager.catalog.tables import masks
from headrace.manager.limits import FILTERED_VALUE_BYTES_MAX, MASKS_MAX
from headrace.operations.errors import OperationError

HIDE, HASH = "hide", "hash"
HIDDEN = "***"
HASH_BYTES = 12
FIELD = re.compile(r"(key|value)(\.[^.\[\]\s]{1,100}|\[\*\])*|headers(\.[^\s]{1,100})?")
_PART = re.compile(r"\.([^.\[\]\s]+)|(\[\*\])")
EVERY_ITEM = "[*]"
RecordMask = Callable[[ConsumerRecord], ConsumerRecord]
MASKING = "masking"
"""The name of the key of hashes."""


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Hides or hashes a field of the records of a topic from everyone below a role."""

    id: str
    topic: str
    is_prefix: bool
    """The topic is the beginning of the names of topics."""
    field: str
    """As in `value`, `key`, `headers.token`, `value.customer.name` and `value.items[*].price`."""
    action: str
    """hide, or hash: equal values stay equal, and are not known."""
    visible_to: str
    """The lowest role that sees the field."""
    created_ms: int

    def covers(self, topic: str) -> bool:
        return topic.startswith(self.topic) if self.is_prefix else topic == self.topic


class MaskedField(NamedTuple):
    root: str
    path: tuple[str, ...]
    action: str


def parsed_field(field: str) -> tuple[str, tuple[str, ...]]:
    """Return the root of a field and its path; OperationError says how to write it."""
    if FIELD.fullmatch(field) is None:
        raise OperationError(
            f'"{field}" is no field to mask: write key, value, value.customer.name, value.items[*].price, headers or '
            "headers.NAME"
        )
    root = re.match(r"key|value|headers", field)
    assert root is not None
    rest = field[root.end() :]
    if root[0] == "headers":
        return "headers", (rest[1:],) if rest else ()
    return root[0], tuple(name or EVERY_ITEM for name, _ in _PART.findall(rest))


def add_rule(connection: Connection, rule: MaskRule) -> None:
    parsed_field(rule.field)
    if rule.action not in (HIDE, HASH):
        raise OperationError(f'"{rule.action}" is no action of a mask: use {HIDE} or {HASH}')
    if ROLES.get(rule.visible_to, UserRole.VIEWER) is UserRole.VIEWER:
        raise OperationError(f'a mask is visible to editor or admin, not to "{rule.visible_to}": everyone would see it')
    if connection.execute(select(func.count()).select_from(masks)).scalar_one() >= MASKS_MAX:
        raise OperationError(f"there are {MASKS_MAX} masks already: remove one first")
    connection.execute(
        insert(masks).values(
            id=rule.id, topic=rule.topic, is_prefix=rule.is_prefix, field=rule.field, action=rule.action,
            visible_to=rule.visible_to, created_ms=rule.created_ms,
        )
    )  # fmt: skip


def listed_rules(connection: Connection) -> list[MaskRule]:
    return [MaskRule(*row) for row in connection.execute(select(masks).order_by(masks.c.topic, masks.c.id))]


def remove_rule(connection: Connection, rule_id: str) -> None:
    if connection.execute(delete(masks).where(masks.c.id == rule_id)).rowcount == 0:
        raise NotInCatalog(f'there is no mask "{rule_id}": GET /v1/access/masks lists all')


def record_mask(rules: Sequence[MaskRule], topic: str, role: UserRole, key: bytes) -> RecordMask | None:
    """Return the function that masks records of a topic for a role; None if it sees everything."""
    fields = [
        MaskedField(*parsed_field(rule.field), rule.action)
        for rule in rules
        if rule.covers(topic) and role < ROLES[rule.visible_to]
    ]
    if not fields:
        return None
    whole = {field.root: field for field in fields if not field.path}
    inner = {root: [field for field in fields if field.root == root and field.path] for root in ("key", "value")}
    names = {field.path[0]: field for field in fields if field.root == "headers" and field.path}

    def masked(record: ConsumerRecord) -> ConsumerRecord:
        return record._replace(
            key=_masked_bytes(record.key, whole.get("key"), inner["key"], key),
            value=_masked_bytes(record.value, whole.get("value"), inner["value"], key),
            headers=tuple(
                (name, _masked_bytes(each, whole.get("headers") or names.get(name), (), key))
                for name, each in record.headers
            ),
        )

    return masked


def _masked_bytes(
    content: bytes | None, whole: MaskedField | None, inner: Sequence[MaskedField], key: bytes
) -> bytes | None:
    if content is None:
        return None
    if whole is not None:
        return _hidden(content, whole.action, key).encode()
    if not inner:
        return content
    if len(content) > FILTERED_VALUE_BYTES_MAX:
        return HIDDEN.encode()
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return HIDDEN.encode()  # The field may be in it in a form that the mask does not know.
    for field in inner:
        value = _masked_value(value, field.path, field.action, key)
    return msgspec.json.encode(value)


def _masked_value(value: Any, path: Sequence[str], action: str, key: bytes) -> Any:
    if not path:
        return None if value is None else _hidden(msgspec.json.encode(value), action, key)
    part, rest = path[0], path[1:]
    match value:
        case None:
            return None
        case dict() if part != EVERY_ITEM:
            if part not in value:
                return value
            return {**value, part: _masked_value(value[part], rest, action, key)}
        case list():
            deeper = rest if part == EVERY_ITEM else path  # A list of objects has the field in each of them.
            return [_masked_value(item, deeper, action, key) for item in value]
    return HIDDEN  # The field may be inside, as in a text that is JSON itself.


def _hidden(content: bytes, action: str, key: bytes) -> str:
    """Return the text that stands for the content; a hash needs the catalog's key, so that it cannot be computed."""
    if action == HASH:
        return blake2b(content, digest_size=HASH_BYTES, key=key).hexdigest()
    return HIDDEN

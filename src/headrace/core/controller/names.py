"""Check that topic names are valid and cannot be confused with each other."""

import re
from collections.abc import Iterable

from headrace.core.controller.commands import Refused
from headrace.model.errors import ErrorCode

TOPIC_NAME_LENGTH_MAX = 249
"""With a dash and the partition number, the folder's name still fits the limits of file systems."""

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC))
"""Topics of coordinators; clients may only read them."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_SHOWN_LENGTH_MAX = 60


def check_topic_name(name: str) -> None:
    """Refuse names that are not valid folder names everywhere; Kafka's rule."""
    if not name:
        reason = "a topic name must not be empty"
    elif name in (".", ".."):
        reason = f'a topic cannot be named "{name}"'
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        reason = (
            f'topic name "{name[:_SHOWN_LENGTH_MAX]}..." has {len(name)} characters: '
            f"at most {TOPIC_NAME_LENGTH_MAX} are allowed"
        )
    elif not _LEGAL.fullmatch(name):
        shown = name[:_SHOWN_LENGTH_MAX].encode("unicode_escape").decode()
        reason = f'topic name "{shown}" has illegal characters: use letters, digits, ".", "_" and "-"'
    else:
        return
    raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


class CollisionIndex:
    """Finds names that differ only in "." and "_": metric names would confuse them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_folded = {_folded(name): name for name in names if _may_collide(name)}

    def check(self, name: str) -> None:
        other = self._by_folded.get(_folded(name)) if _may_collide(name) else None
        if other is not None and other != name:
            raise Refused(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f'topic name "{name}" collides with existing topic "{other}": they differ only in "." and "_"',
            )

    def add(self, name: str) -> None:
        if _may_collide(name):
            self._by_folded[_folded(name)] = name


def _may_collide(name: str) -> bool:
    return "." in name or "_" in name


def _folded(name: str) -> str:
    return name.replace(".", "_")

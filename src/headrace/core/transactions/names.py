"""Which transactional ids belong together."""

SLOT_MARK = "#"
"""What stands behind it tells members of one owner apart; they share a coordinator, one decision can end them all."""


def owner_of(transactional_id: str) -> str:
    return transactional_id.partition(SLOT_MARK)[0]


def is_member(transactional_id: str) -> bool:
    """Whether the id may be one of a pool."""
    return SLOT_MARK in transactional_id


def member_id(owner: str, slot: int) -> str:
    return f"{owner}{SLOT_MARK}{slot}"


def slot_of(transactional_id: str) -> int:
    """Of an id that `member_id` made."""
    return int(transactional_id.partition(SLOT_MARK)[2])

"""Names of transactional ids: those of one owner's pool are `<owner>#<slot>`."""

SLOT_MARK = "#"
"""Separates the owner from the slot. All ids of an owner share a coordinator, so one decision can end all of them."""


def owner_of(transactional_id: str) -> str:
    return transactional_id.partition(SLOT_MARK)[0]


def is_pooled(transactional_id: str) -> bool:
    """Return whether the id has the form of an id of a pool."""
    return SLOT_MARK in transactional_id


def pooled_id(owner: str, slot: int) -> str:
    return f"{owner}{SLOT_MARK}{slot}"


def slot_of(transactional_id: str) -> int:
    """Return the slot of an id that `pooled_id` made."""
    return int(transactional_id.partition(SLOT_MARK)[2])

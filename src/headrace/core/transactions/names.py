"""Which transactional ids belong together."""

SLOT_MARK = "#"
"""What stands behind it tells members of one owner apart; they share a coordinator, one decision can end them all."""


def owner_of(transactional_id: str) -> str:
    return transactional_id.partition(SLOT_MARK)[0]

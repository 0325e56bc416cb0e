"""Suggest the name that was most likely meant by an unknown one."""

from collections.abc import Iterable
from itertools import islice

LIKE_A_WORD = 0.6
LIKE_A_NAME = 0.8
"""Least similarity of the nearest name, as difflib measures it: names that people choose often begin alike."""
COMPARED_NAMES_MAX = 10_000
COMPARED_CHARACTERS_MAX = 100


def nearest_of(name: str, known: Iterable[str], *, likeness: float = LIKE_A_WORD) -> str | None:
    """Return the nearest name in its documented case, ignoring case; None if none is similar."""
    by_letters = {each.lower(): each for each in islice(known, COMPARED_NAMES_MAX)}
    if not by_letters:
        return None
    from difflib import get_close_matches  # slow to import, and needed only here

    nearest = get_close_matches(name[:COMPARED_CHARACTERS_MAX].lower(), by_letters, n=1, cutoff=likeness)
    return by_letters[nearest[0]] if nearest else None


def question(nearest: str) -> str:
    return f'did you mean "{nearest}"?'


def guess(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: the likely one, or all valid ones."""
    names = sorted(known)
    nearest = nearest_of(name, names)
    return question(nearest) if nearest is not None else f"there are {', '.join(names)}"


def meant(name: str, known: Iterable[str], *, likeness: float = LIKE_A_NAME) -> str:
    """Return the end of a message about a user's name: the likely one, if any is similar."""
    nearest = nearest_of(name, known, likeness=likeness)
    return "" if nearest is None else f", {question(nearest)}"


def aside(name: str, known: Iterable[str]) -> str:
    """Return the same for the middle of a message."""
    nearest = nearest_of(name, known, likeness=LIKE_A_NAME)
    return "" if nearest is None else f" ({question(nearest)})"
